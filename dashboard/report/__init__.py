"""Reports of a run, a week, or a comparison: as one HTML file that opens offline, as Markdown, as text.

Without Streamlit, so that the command line has them quickly. `made`: when, in the zone in which times are
told; now, in UTC, by default.
"""

from __future__ import annotations

from datetime import UTC, datetime

from dashboard.report.document import Document
from store.comparisons import Comparison
from store.queries import RunReport
from store.week import Week

Told = Comparison | RunReport | Week


def html(told: Told, made: datetime | None = None) -> str:
    """One file, some 5 MB where it has charts: what draws them is in it, once."""
    from dashboard.report import as_html

    return as_html.write(document(told, made))


def markdown(told: Told, made: datetime | None = None) -> str:
    """At most as long as a comment on GitHub may be."""
    from dashboard.report import as_markdown

    return as_markdown.write(document(told, made))


def text(told: Told, made: datetime | None = None) -> str:
    """For a terminal."""
    from dashboard.report import as_text

    return as_text.write(document(told, made))


def document(told: Told, made: datetime | None = None) -> Document:
    from dashboard.report import of_comparison, of_run, of_week

    at = made or datetime.now(UTC)
    if isinstance(told, Comparison):
        return of_comparison.document(told, at)
    return of_week.document(told, at) if isinstance(told, Week) else of_run.document(told, at)
