"""Change points: alarms of unchanged series, steps found, and real series, beside other detectors.

Thresholds were fixed on simulated series (other draws than these) before a real one was scored. Peers on real
series are what their own code reported (peers.jsonl beside the series); on simulated ones Otava and ruptures
run in an environment of their own, made for the occasion where the package index can be reached. "One step"
and "windows" are few lines each, in the manner of asv and of Perfherder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import ROOT, Bar
from store.stats.changepoints import online, retrospective

Floats = NDArray[np.float64]
Dates = list[int]
Figures = dict[str, float | str]

DESIGNS = 1
"""Settings of ours that were scored on the real series."""
SEED = 20261201
CASES, BEFORE, NIGHTS, FIRST = 50, 60, 90, 10
MARGIN = 5
FEW = 100
"""Series of each kind that Otava and ruptures see: they take their time."""
THEIRS = Path(__file__).parent
SERIES = ROOT.parent / "shared" / "data" / "timeseries"
ABSENT = "the series of ../shared/data/timeseries are not here"
PEERS = {
    "Otava": "otava_default(w50,p.001)",
    "Nyrkio": "nyrkio(p.001,mag5%)",
    "asv": "asv_steps",
    "Perfherder": "perfherder(t7,12/24/12)",
    "Bencher": "bencher_ttest99(64)",
    "MongoDB": "mongo_edivisive(p.05,100)",
}


def measure(quick: bool) -> dict[str, Any]:
    part = 10 if quick else 1
    simulated = _simulated(np.random.default_rng(SEED), 500 // part)
    return {
        "retrospective": _retrospective(simulated),
        "online": _online(np.random.default_rng(SEED + 1), 120 // part),
        "real": _real() if SERIES.exists() else {},
        "designs": DESIGNS,
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    yield from _table("simulated, looked at once: share of series", found["retrospective"])
    yield from _table(f"simulated, looked at every night from the {FIRST}th", found["online"])
    yield from _table("real", found["real"]) if found["real"] else [ABSENT]
    yield f"settings of ours that were scored on the real series: {found['designs']}"


def bars(found: dict[str, Any]) -> list[Bar]:
    once, nightly, real = ({row: of["ours"] for row, of in found[name].items()} for name in _PARTS)
    simulated = [
        Bar(
            "points_alarms_binomial",
            max(once[row] for row in once if row.startswith("alarm: 50 cases")),
            0.06,
        ),
        Bar("points_alarms_ar", once["alarm: AR(.3)"], 0.12),
        Bar("points_step_after_3", once["found: .9 to .8, 3 runs after"], 0.55, at_least=True),
        Bar("points_step_after_10", once["found: .9 to .8, 10 runs after"], 0.95, at_least=True),
        Bar("points_online_alarms_binomial", nightly["alarm: 50 cases"], 0.06),
        Bar("points_online_alarms_values", nightly["alarm: values"], 0.06),
        Bar("points_online_alarms_ar", nightly["alarm: AR(.3)"], 0.15),
        Bar("points_online_step_within_10", nightly["told: .9 to .8, within 10"], 0.90, at_least=True),
    ]
    return simulated + (_real_bars(real) if real else [])


_PARTS = ("retrospective", "online", "real")


def _real_bars(real: Figures) -> list[Bar]:
    return [
        Bar("points_talos_short_hits", float(real["Talos, at most 365 runs: hits of 3"]), 3, at_least=True),
        Bar("points_talos_short_extra", float(real["Talos, at most 365 runs: others"]), 3),
        Bar("points_talos_hits", float(real["Talos, all: hits of 12"]), 12, at_least=True),
        Bar("points_talos_extra", float(real["Talos, all: others"]), 70),
    ]


def _table(title: str, rows: dict[str, Figures]) -> Iterator[str]:
    names = list(dict.fromkeys(name for figures in rows.values() for name in figures))
    yield f"{title:<48}" + "".join(f"{name:>16}" for name in names)
    for row, figures in rows.items():
        yield f"  {row:<46}" + "".join(f"{figures.get(name, '-'):>16}" for name in names)


# Simulated, looked at once


def _simulated(random: np.random.Generator, times: int) -> dict[str, dict[str, Any]]:
    cells = {
        f"alarm: 50 cases, {share:g}": _cell(random.binomial(CASES, share, (times, NIGHTS)) / CASES, CASES)
        for share in (0.8, 0.9, 0.98)
    }
    cells["alarm: 20 cases, 0.98"] = _cell(random.binomial(20, 0.98, (times, NIGHTS)) / 20, 20)
    cells["alarm: values"] = _cell(random.normal(0, 1, (times, NIGHTS)))
    for rho in (0.3, 0.6):
        cells[f"alarm: AR({rho:.1f})".replace("0.", ".")] = _cell(correlated(random, times, NIGHTS, rho))
    cells["alarm: heavy tails, t(3)"] = _cell(random.standard_t(3, (times, NIGHTS)))
    cells["alarm: one outlier of 8 sd"] = _cell(_outlying(random, times))
    for after in (3, 10):
        cells[f"found: .9 to .8, {after} runs after"] = _cell(_falling(random, times, after), CASES, BEFORE)
    return cells


def _cell(series: Floats, cases: int | None = None, change: int | None = None) -> dict[str, Any]:
    return {"series": series, "cases": cases, "change": change}


def correlated(random: np.random.Generator, times: int, n: int, rho: float) -> Floats:
    """AR(1) of variance 1."""
    values = random.normal(0, 1, (times, n))
    values[:, 1:] *= np.sqrt(1 - rho**2)
    for run in range(1, n):
        values[:, run] += rho * values[:, run - 1]
    return values


def _outlying(random: np.random.Generator, times: int) -> Floats:
    values = random.normal(0, 1, (times, NIGHTS))
    values[np.arange(times), random.integers(0, NIGHTS, times)] -= 8
    return values


def _falling(random: np.random.Generator, times: int, after: int) -> Floats:
    shares = np.repeat([0.9, 0.8], [BEFORE, after])
    return random.binomial(CASES, shares, (times, BEFORE + after)) / CASES


def _retrospective(cells: dict[str, dict[str, Any]]) -> dict[str, Figures]:
    theirs = _theirs([values for cell in cells.values() for values in cell["series"][:FEW].tolist()])
    rows, done = {}, 0
    for row, cell in cells.items():
        count = min(FEW, len(cell["series"]))
        rows[row] = {
            "ours": _share(cell, [_ours(retrospective, values, cell["cases"]) for values in cell["series"]]),
            "as values": _share(cell, [_ours(retrospective, values, None) for values in cell["series"]]),
            "one step": _share(cell, [one_step(values) for values in cell["series"]]),
            "windows": _share(cell, [windows(values) for values in cell["series"]]),
            **{name: _share(cell, dates[done : done + count]) for name, dates in theirs.items()},
            "knows the noise": _knowing(cell) if cell["change"] else "-",
        }
        if not theirs:
            rows[row]["Otava, ruptures"] = "not run here"
        done += count
    return rows


def _ours(look: Callable[..., Any], values: Floats, cases: int | None) -> Dates:
    counts = None if cases is None else np.full(len(values), cases)
    return [change.index for change in look(values, counts).points]


def _share(cell: dict[str, Any], dates: list[Dates]) -> float:
    """Of series with any change, or, where there is one, with a date within MARGIN of it."""
    change = cell["change"]
    hits = [any(change is None or abs(date - change) <= MARGIN for date in found) for found in dates]
    return round(float(np.mean(hits)), 3)


def _knowing(cell: dict[str, Any]) -> float:
    """The likelihood ratio of a step at any date with shares known to be independent and binomial; its
    threshold is passed by 5 % of unchanged series."""
    random, n, change = np.random.default_rng(SEED), cell["series"].shape[1], cell["change"]
    unchanged = random.binomial(CASES, 0.9, (2000, n)) / CASES
    threshold = np.quantile(_step_evidence(unchanged).max(axis=1), 0.95)
    evidence = _step_evidence(cell["series"])
    near = np.abs(evidence.argmax(axis=1) + 1 - change) <= MARGIN
    return round(float(np.mean((evidence.max(axis=1) > threshold) & near)), 3)


def _step_evidence(shares: Floats) -> Floats:
    """Twice the log likelihood ratio of a step before each run but the first, (series, n - 1)."""
    n, passed = shares.shape[1], np.cumsum(shares * CASES, axis=1)
    total, left = passed[:, -1:], passed[:, :-1]
    before = CASES * np.arange(1, n)
    return 2 * (
        _entropy(left, before)
        + _entropy(total - left, CASES * n - before)
        - _entropy(total, np.array([CASES * n]))
    )


def _entropy(passed: Floats, cases: NDArray[np.int64]) -> Floats:
    share = np.clip(passed / cases, 1e-12, 1 - 1e-12)
    return np.asarray(passed * np.log(share) + (cases - passed) * np.log(1 - share))


# Others, in few lines


def one_step(values: Floats) -> Dates:
    """In the manner of asv: levels by absolute error, a step kept while it lowers the information criterion
    log(error) + 4 log(n) / n a step."""
    n = len(values)
    costs = np.array([_absolute(values[:cut]) + _absolute(values[cut:]) for cut in range(1, n)])
    cut = int(costs.argmin()) + 1
    gain = np.log((_absolute(values) + 1e-12) / (costs.min() + 1e-12))
    return [cut] if gain > 4 * np.log(n) / n else []


def _absolute(values: Floats) -> float:
    return float(np.abs(values - np.median(values)).sum())


def windows(values: Floats, size: int = 12, threshold: float = 7.0) -> Dates:
    """In the manner of Perfherder: t of the 12 runs after each date against the 12 before, the largest beyond
    7."""
    if len(values) < 2 * size:
        return []
    frames = np.lib.stride_tricks.sliding_window_view(values, size)
    before, after = frames[:-size], frames[size:]
    spread = np.sqrt((before.var(axis=1, ddof=1) + after.var(axis=1, ddof=1)) / size)
    t = np.abs(after.mean(axis=1) - before.mean(axis=1)) / np.maximum(spread, 1e-12)
    return [int(t.argmax()) + size] if t.max() > threshold else []


def _theirs(series: list[list[float]]) -> dict[str, list[Dates]]:
    """Dates by Otava and ruptures; nothing where their environment cannot be made."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        try:
            _run([sys.executable, "-m", "venv", folder])
            _run([str(python), "-m", "pip", "install", "--quiet", "-r", str(THEIRS / "theirs.txt")])
            told = _run([str(python), str(THEIRS / "theirs.py")], json.dumps(series))
        except subprocess.CalledProcessError as error:
            print(f"Otava and ruptures: {error.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return {}
    found: dict[str, list[Dates]] = json.loads(told)
    return found


def _run(command: list[str], given: str | None = None) -> str:
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout


# Simulated, looked at every night


def _online(random: np.random.Generator, times: int) -> dict[str, Figures]:
    looks = {"ours": online, "ours, once": retrospective, "one step": one_step, "windows": windows}
    unchanged = {
        "alarm: 50 cases": _cell(random.binomial(CASES, 0.9, (times, NIGHTS)) / CASES, CASES),
        "alarm: values": _cell(random.normal(0, 1, (times, NIGHTS))),
        "alarm: AR(.3)": _cell(correlated(random, times, NIGHTS, 0.3)),
    }
    rows: dict[str, Figures] = {
        row: {name: _ever(look, cell) for name, look in looks.items()} for row, cell in unchanged.items()
    }
    waits = {name: _waits(look, _falling(random, times, 10)) for name, look in looks.items()}
    for nights in (3, 10):
        told = {name: round(float(np.mean(wait <= nights)), 3) for name, wait in waits.items()}
        rows[f"told: .9 to .8, within {nights}"] = told
    rows["median nights to tell"] = {name: float(np.median(wait)) for name, wait in waits.items()}
    return rows


def _ever(look: Callable[..., Any], cell: dict[str, Any]) -> float:
    """The share of histories in which any night alarms."""
    nights = range(FIRST, NIGHTS + 1)
    alarmed = [any(_looked(look, values[:n], cell["cases"]) for n in nights) for values in cell["series"]]
    return round(float(np.mean(alarmed)), 3)


def _waits(look: Callable[..., Any], series: Floats) -> Floats:
    """Nights from the step until it is dated within MARGIN; infinite where ten are not enough."""

    def wait(values: Floats) -> float:
        for nights in range(1, len(values) - BEFORE + 1):
            found = _looked(look, values[: BEFORE + nights], CASES)
            if any(abs(date - BEFORE) <= MARGIN for date in found):
                return nights
        return np.inf

    return np.array([wait(values) for values in series])


def _looked(look: Callable[..., Any], values: Floats, cases: int | None) -> Dates:
    ours = look in (online, retrospective)
    return _ours(look, values, cases) if ours else look(values)


# Real


def _real() -> dict[str, Figures]:
    series = [one for one in _rows("series.jsonl") if not one["id"].startswith("synthetic/")]
    reported = {one["id"]: one for one in _rows("peers.jsonl")}
    detectors: dict[str, Callable[[dict[str, Any]], Dates | None]] = {
        "ours": lambda one: _ours(retrospective, np.array(one["values"], dtype=float), None),
        "ours, online": lambda one: _ours(online, np.array(one["values"], dtype=float), None),
        **{name: lambda one, key=key: _listed(reported[one["id"]].get(key)) for name, key in PEERS.items()},
        "silence": lambda _: [],
    }
    columns = {name: _scored(series, detector) for name, detector in detectors.items()}
    return {row: {name: column[row] for name, column in columns.items()} for row in columns["ours"]}


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SERIES / name).read_text(encoding="utf-8").splitlines()]


def _listed(dates: Any) -> Dates | None:
    """None where a peer was not run on a series: the file says why instead."""
    return dates if isinstance(dates, list) else None


def _scored(series: list[dict[str, Any]], detector: Callable[[dict[str, Any]], Dates | None]) -> Figures:
    found = {one["id"]: detector(one) for one in series}
    talos = [one for one in series if one["id"].startswith("treeherder/")]
    short = [one for one in talos if one["n"] <= 365]
    tcpd = [one for one in series if one["id"].startswith("tcpd/")]
    scores = [_f1(one, dates) for one in tcpd if (dates := found[one["id"]]) is not None]
    return {
        **_hits("Talos, at most 365 runs: {} of 3", short, found),
        **_hits("Talos, all: {} of 12", talos, found),
        "TCPD: mean F1": round(float(np.mean(scores)), 3),
        "TCPD: series": len(scores),
    }


def _hits(row: str, series: list[dict[str, Any]], found: dict[str, Dates | None]) -> Figures:
    """Changes of the truth with a date within MARGIN, and dates beyond one for each of them."""
    names = row.format("hits"), row.split(": ")[0] + ": others"
    if any(found[one["id"]] is None for one in series):
        return dict.fromkeys(names, "not run")
    hits = sum(
        any(abs(date - true) <= MARGIN for date in found[one["id"]] or [])
        for one in series
        for true in one["change_points"]
    )
    return {names[0]: hits, names[1]: sum(len(found[one["id"]] or []) for one in series) - hits}


def _f1(one: dict[str, Any], dates: Dates) -> float:
    """As van den Burg and Williams 2020 score: index 0 belongs to every list, precision is against what any
    annotator marked, recall is the mean over annotators; each mark is matched once, within MARGIN."""
    annotators = [{0, *marks} for marks in one["change_points"].values()]
    ours = {0, *dates}
    precision = len(_matched(set().union(*annotators), ours)) / len(ours)
    recall = float(np.mean([len(_matched(marks, ours)) / len(marks) for marks in annotators]))
    return 2 * precision * recall / (precision + recall)


def _matched(marks: set[int], dates: set[int]) -> set[int]:
    left, found = set(dates), set()
    for mark in sorted(marks):
        near = [date for date in left if abs(date - mark) <= MARGIN]
        if near:
            left.remove(min(near, key=lambda date: abs(date - mark)))
            found.add(mark)
    return found
