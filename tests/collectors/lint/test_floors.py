"""The floors: which cases tell a memory from none."""

from pathlib import Path

from collectors.lint.cost import Cost, Estimate, cost, estimate
from collectors.lint.floors import floor_findings, on_floors
from collectors.suite import SuiteConfig, load
from store.queries import CostRow
from tests.collectors.lint.conftest import NEAR, case
from tests.collectors.playground import write_suite

DATED = [{"text": text, "at": f"2026-0{5 - n}-01"} for n, text in enumerate(NEAR)]
LINES = [
    case("told-apart", writes=DATED[::-1], expect_any=["under the workbench"]),
    case("newest", writes=DATED),
    case("silent", expect_any=None, forbid_any=["workbench"], query="What plays music?"),
    case("silence-is-right", expect_any=None, forbid_any=["workbench"], abstain=True, query="Who sings?"),
    case("idle", expect_any=None, forbid_any=["horn"], query="Any horn?"),
    case("of-an-index", leg="keyword", query="kettle"),
]


def suite(folder: Path):
    return load(SuiteConfig("mine", write_suite(folder / "mine.jsonl", LINES)))


def test_each_floor_is_asked(tmp_path):
    """A case is passed by a floor, is not, or cannot be asked of it."""
    found = {
        case.probe.case: (case.nothing, case.everything, case.telling) for case in on_floors(suite(tmp_path))
    }
    assert found == {
        "told-apart": (False, False, True),
        "newest": (False, True, False),
        "silent": (True, False, False),
        "silence-is-right": (True, False, True),
        "idle": (True, True, False),
        "of-an-index": (None, None, False),
    }


def test_what_a_floor_passes_is_named(tmp_path):
    """Cases that a floor passes are findings, but for silence where silence is right; none is an error."""
    findings = list(floor_findings(on_floors(suite(tmp_path))))
    assert [(found.line, found.case, found.rule) for found in findings] == [
        (2, "newest", "passed-by-everything"),
        (3, "silent", "passed-by-nothing"),
        (5, "idle", "passed-by-both"),
    ]
    assert {found.severity for found in findings} == {"warning"}


def test_what_a_run_costs(tmp_path):
    """Plants, questions, and calls: one for each run of memories of a user and session, one a question."""
    lines = [
        case(writes=[*NEAR, {"text": "Anna's.", "user": "anna"}, "Mine again."]),
        {
            "id": "s",
            "source": "made up",
            "steps": [
                {"plant": [{"id": "a", "text": "One."}, "Two."]},
                {"session": "later"},
                {"amend": "a", "text": "Three."},
                {"forget": ["a"]},
                {"probe": "Two?", "expect_any": ["Two"]},
            ],
        },
    ]
    found = cost(load(SuiteConfig("mine", write_suite(tmp_path / "mine.jsonl", lines))))
    assert found == Cost(plants=8, questions=2, scenarios=2, calls=3 + 1 + 1 + 1 + 1 + 1)


def test_an_estimate_goes_by_the_last_run():
    """Minutes are plants, settling and questions as they went last; what was not measured is None, not 0."""
    price = Cost(plants=600, questions=60, scenarios=6, calls=100)
    measured = CostRow("vendor", 7, plant_ms=100.0, settle_ms=5000.0, recall_ms=500.0, money=0.01)
    assert estimate(price, measured) == Estimate("vendor", 7, minutes=2.0, money=6.0)
    unknown = measured._replace(plant_ms=None, money=None)
    assert estimate(price, unknown) == Estimate("vendor", 7, None, None)
