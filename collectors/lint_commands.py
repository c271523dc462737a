"""`memtrend lint`: what is wrong with a suite, and what a run of it will cost."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from collectors.arguments import BAD, Refused
from collectors.commands import Json, database, print_json, settings

if TYPE_CHECKING:
    from collectors.lint import Finding
    from collectors.lint.cost import Cost, Estimate
    from collectors.suite import Suite, SuiteConfig
    from store.queries import CostRow
    from store.settings import Settings


class Linted(NamedTuple):
    """What is told of one suite. `asked` and `telling`: cases that both floors could be asked, and those
    that tell a memory from a floor; None without --floors."""

    name: str
    cases: int
    findings: list[Finding]
    cost: Cost | None
    estimates: list[Estimate]
    asked: int | None = None
    telling: int | None = None


def lint(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="A file, a folder, or a suite by name.")
    ],
    floors: Annotated[
        bool, typer.Option("--floors", help="Name the cases that the two floors pass.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what is wrong with suites before they cost a run, and what a run will cost. Exit 1 on errors."""
    gc.disable()  # a large suite is many small objects that all live to the end
    of = settings()
    configs = [_config(of, path) for path in paths]
    measured = _measured(of)
    found = [_linted(config, measured, floors) for config in configs]
    if json:
        print_json(_document(found, floors))
    else:
        typer.echo("\n".join(line for one in found for line in _lines(one)))
    errors = sum(finding.severity == "error" for one in found for finding in one.findings)
    raise typer.Exit(BAD if errors else 0)


def _config(of: Settings, path: str) -> SuiteConfig:
    from collectors.configured import suite_config, suite_names
    from collectors.suite import SuiteConfig

    names = suite_names(of)
    if path in names:
        return suite_config(of, path)
    if not Path(path).exists():
        raise Refused(f"{path!r} is no file, no folder and no suite; known suites: {', '.join(names)}")
    kind = "index_health" if Path(path).suffix == ".toml" else "golden"
    return SuiteConfig(Path(path).stem, Path(path), kind)


def _measured(of: Settings) -> list[CostRow]:
    """What the configured backends and their controls took last. A record that is not there is not made for
    this."""
    from sqlalchemy.engine import make_url

    from collectors.configured import control_names
    from store import queries

    known = {*of.backends, *control_names(of).values()}
    url = make_url(of.database.url.get_secret_value())
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        return []
    with database(of) as db:
        return [row for row in queries.last_costs(db) if row.backend in known]


def _linted(config: SuiteConfig, measured: Iterable[CostRow], floors: bool) -> Linted:
    from collectors.lint import check
    from collectors.lint.cost import cost, estimate

    suite, findings = check(config)
    if suite is None:
        return Linted(config.name, 0, findings, None, [])
    price = cost(suite)
    linted = Linted(config.name, price.questions, findings, price, [estimate(price, row) for row in measured])
    return _with_floors(linted, suite) if floors else linted


def _with_floors(linted: Linted, suite: Suite) -> Linted:
    from collectors.lint.floors import floor_findings, on_floors

    asked = [case for case in on_floors(suite) if case.asked]
    return linted._replace(
        findings=[*linted.findings, *floor_findings(asked)],
        asked=len(asked),
        telling=sum(case.telling for case in asked),
    )


def _document(found: Iterable[Linted], floors: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "findings": [finding._asdict() for one in found for finding in one.findings],
        "cost": [
            {
                "suite": one.name,
                **one.cost._asdict(),
                "backends": [estimate._asdict() for estimate in one.estimates],
            }
            for one in found
            if one.cost
        ],
    }
    if floors:
        document["floors"] = [
            {"suite": one.name, "asked": one.asked, "telling": one.telling}
            for one in found
            if one.asked is not None
        ]
    return document


# For a person


def _lines(linted: Linted) -> Iterator[str]:
    from collectors.lint.rules import BY_NAME

    for finding in linted.findings:
        place = f"{finding.file}:{finding.line}" if finding.line else finding.file
        case = f"{finding.case}: " if finding.case else ""
        yield f"{place}: {finding.severity}: {case}{finding.message} [{finding.rule}]"
        yield f"    {BY_NAME[finding.rule].why} {finding.hint}"
    yield from _summary(linted)


def _summary(linted: Linted) -> Iterator[str]:
    from collectors.lint.noting import amount

    errors = sum(finding.severity == "error" for finding in linted.findings)
    told = f"{amount(errors, 'error')}, {amount(len(linted.findings) - errors, 'warning')}"
    if linted.cost is None:
        yield f"{linted.name}: {told}; it cannot be loaded"
        return
    yield f"{linted.name}: {amount(linted.cases, 'case')}, {told}"
    if linted.asked:
        share = (linted.telling or 0) / linted.asked
        yield f"  {linted.telling} of {linted.asked} cases ({share:.0%}) tell a memory from both floors"
    cost = linted.cost
    yield f"  a run plants {cost.plants} memories and asks {cost.questions} questions, in {cost.calls} calls"
    yield from (f"  {_estimated(estimate)}" for estimate in linted.estimates)


def _estimated(estimate: Estimate) -> str:
    minutes = "time not measured" if estimate.minutes is None else f"{estimate.minutes:.1f} minutes"
    money = "money not measured" if estimate.money is None else f"{estimate.money:.2f} USD"
    return f"{estimate.backend}: {minutes}, {money}, going by run {estimate.run}"
