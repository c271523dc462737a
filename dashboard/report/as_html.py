"""A document as one HTML file that opens without a network: look, charts, and what draws them, in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dashboard import sparkline
from dashboard.palette import THEMES, Style
from dashboard.report.document import Chart, Document, Listing, Spark, Table, plain

TEMPLATES = Path(__file__).parent / "templates"
SHORT = 14
"""Rows of a table that is kept on one page."""
SPARK = 116.0
"""Px that a small chart is wide."""
INK = Style("var(--series)", "solid", "circle", "●")
"""Of a small chart, which takes its colours from the page."""
SHOWN = ("background", "text", "muted", "grid", "border", "worse", "suspected", "better", "problem")
"""Colours of a theme that the page itself has."""


def write(document: Document) -> str:
    charts = [block for section in document.sections for block in section.blocks if isinstance(block, Chart)]
    return (
        _environment()
        .get_template("report.html")
        .render(
            document=document,
            place=charts.index,
            themes={name: _colours(name) for name in THEMES},
            style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
            script=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
            plotly=_plotly() if charts else "",
            figures=_safe_json([_drawn(chart) for chart in charts]),
            short=SHORT,
        )
    )


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"plain": plain, "svg": _svg}
    made.tests |= {kind.__name__.lower(): _is(kind) for kind in (Table, Chart, Listing, Spark)}
    return made


def _is(kind: type) -> Any:
    return lambda block: isinstance(block, kind)


def _colours(name: str) -> dict[str, str]:
    theme = THEMES[name]
    return {key: getattr(theme, key) for key in SHOWN} | {"series": theme.series[0]}


def _plotly() -> Markup:
    """Once, however many charts there are."""
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs().replace("</script", "<\\/script"))


def _drawn(chart: Chart) -> dict[str, dict[str, Any]]:
    """For each theme, wide and narrow: the file is drawn where it is opened."""
    return {
        name: {width: _figure(chart, name, width == "narrow") for width in ("wide", "narrow")}
        for name in THEMES
    }


def _figure(chart: Chart, theme: str, narrow: bool) -> Any:
    figure = chart.draw(THEMES[theme], narrow)
    figure.layout.template = None  # the look is the page's own
    return json.loads(figure.to_json())


def _safe_json(value: Any) -> Markup:
    """As JSON inside of a script, where nothing in it can end that."""
    told = json.dumps(value, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        told = told.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(told)


def _svg(spark: Spark) -> Markup:
    """With colours of the page, so light and dark."""
    if not spark.dots:
        return Markup("")
    widths = [dot.high - dot.low for dot in spark.dots if dot.low is not None and dot.high is not None]
    frame = sparkline.Frame(spark.dots[0].at, spark.dots[-1].at, sparkline.span(widths), SPARK)
    return Markup(sparkline.sparkline(spark.dots, INK, THEMES["light"], frame))
