"""A control arm: a frozen release runs beside the backend, in turns, and tells whose doing a fall is."""

import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from collectors import plans
from collectors.backend import BackendConfig
from collectors.configured import backend_public, configured
from collectors.lease import BackendLease, InstanceBusy
from collectors.plans import RunLimits
from collectors.runner import run
from collectors.suite import Scope
from store import models as m
from store import queries, shapes, verdict_words
from store.errors import StoreError
from store.portable import Against
from tests.collectors.odd_backends import ODD
from tests.collectors.playground import (
    LOSING,
    LOST,
    cases,
    one_document,
    opened,
    plan,
    project,
    results,
    suite,
)

pytestmark = pytest.mark.usefixtures("no_pauses")
LOSES = {"lost": "r key opens"}
"""A release that loses three of 16 cases: those of `LOST`."""


def frozen(type="Shelf", **options):
    return BackendConfig("mine-control", ODD + type, options)


def beside(of, type="Shelf", **options):
    """The plan with a control of this type."""
    return replace(of, control=frozen(type, **options))


def of_control(db, outcome):
    found = queries.control_beside(db, outcome.run_id)
    return found and queries.run(db, found.control_id)


def stop_after(done, stop):
    def look(progress):
        if progress.done >= done:
            stop.set()

    return look


# How it runs


def test_takes_turns(db, tmp_path):
    """Two arms play each scenario one after the other, and take turns in who begins, over all trials."""
    notes = str(tmp_path / "journal")
    of = plan(suite(tmp_path, cases(3)), trials=2, options={"journal": notes})
    outcome = run(beside(of, journal=notes), db)
    planted = [line.split(" ")[2:] for line in Path(notes).read_text().splitlines() if " remember " in line]
    order = [(box.split("-")[1], id.split("/")[0]) for box, id in planted if "check" not in box]
    own, control = str(outcome.run_id), str(of_control(db, outcome).id)
    assert [arm for arm, _ in order[::2]] == [own, control, control, own] * 3
    names = [f"case-{key}" for key in ("amber", "basil", "cedar")] * 2
    assert [name for _, name in order[::4]] == names == [name for _, name in order[2::4]]


def test_each_arm_is_a_run(db, tmp_path):
    """Each arm has its own run, with all its answers, as often as the other's, under its own name."""
    of = plan(suite(tmp_path, cases(4)), trials=2, meta={"build": "7"})
    outcome = run(beside(of, lost="basil key"), db)
    own, control = queries.run(db, outcome.run_id), of_control(db, outcome)
    assert (own.backend, control.backend) == ("mine", "mine-control")
    assert [(row.status, row.cases_done, row.trials, row.meta) for row in (own, control)] == [
        ("whole", 8, 2, {"build": "7"})
    ] * 2
    told = [results(db, row.id) for row in (own, control)]
    assert told[0].keys() == told[1].keys()
    assert [key for key in told[0] if told[0][key][1] != told[1][key][1]] == [
        ("case-basil", 1),
        ("case-basil", 2),
    ]
    assert queries.verdict(db, control.id).backend == "mine-control"


def test_progress_counts_both(db, tmp_path):
    """Progress goes up to the cases of both arms, and is told of the backend's run."""
    told = []
    outcome = run(beside(plan(suite(tmp_path, cases(3)))), db, on_progress=told.append)
    assert [(one.done, one.total, one.run_id) for one in told] == [
        (done, 6, outcome.run_id) for done in range(7)
    ]


def test_side_by_side_where_both_allow_it(db, tmp_path):
    """Backends that take several scenarios at once do so with a control as well, and lose no answer."""
    outcome = run(beside(plan(suite(tmp_path, cases(9)), "Counted"), "Counted"), db)
    assert [queries.run(db, one).cases_done for one in (outcome.run_id, of_control(db, outcome).id)] == [9, 9]


def test_only_whole_suites_have_one(db, tmp_path):
    """A part of a suite, or a calibration, is no night, and runs without its control."""
    outcome = run(beside(replace(plan(suite(tmp_path, cases(3))), subset="keys")), db)
    assert of_control(db, outcome) is None
    assert queries.count_runs(db) == 1


def test_what_a_control_takes_over(tmp_path):
    """It is asked as its backend is, but nothing that it loses is diagnosed, and it is held against its own
    series whatever its backend is held against."""
    limits = RunLimits(timeout_s=7, max_diagnoses=9)
    of = replace(plan(suite(tmp_path, cases(3)), trials=2, limits=limits), against=Against(()))
    (control,) = plans.beside(beside(of))
    assert control.limits == replace(limits, max_diagnoses=0)
    assert (control.against, control.control, control.backend) == (None, None, frozen())
    assert (control.suite, control.trials, control.confirm) == (of.suite, 2, of.confirm)
    assert of.limits.max_diagnoses == 9


def test_an_index_that_stands_has_none(tmp_path):
    """Two releases never share a store."""
    of = beside(plan(suite(tmp_path, cases(1))))
    stands = [replace(one, standing=Scope("memtrend-standing")) for one in of.suite.scenarios]
    assert plans.beside(of)
    assert plans.beside(replace(of, suite=replace(of.suite, scenarios=tuple(stands)))) == []


def test_is_no_backend_of_the_teams(db, tmp_path):
    """A control stands among the runs, and is on no overview, in no progress and among no contenders."""
    outcome = run(beside(plan(suite(tmp_path, cases(3)))), db)
    assert {row.backend for row in queries.runs(db)} == {"mine", "mine-control"}
    assert [row.backend for row in queries.overview(db)] == ["mine"]
    assert [(row.name, row.control_of) for row in queries.backends(db)] == [
        ("mine", ""),
        ("mine-control", "mine"),
    ]
    assert queries.controls(db) == [("mine", "mine-control", f"{ODD}Shelf")]
    assert of_control(db, outcome).control_of == outcome.run_id
    assert queries.run(db, outcome.run_id).control_of is None


# What goes wrong with it


def test_a_busy_control_is_named(db, tmp_path):
    """When another run has the control, nothing is asked and nothing written: the refusal names it."""
    notes = tmp_path / "journal"
    of = plan(suite(tmp_path, cases(3)), options={"journal": str(notes)})
    with (
        BackendLease(db, "mine-control", threading.Event()),
        pytest.raises(InstanceBusy, match="backend mine-control is in use"),
    ):
        run(beside(of), db)
    assert (queries.count_runs(db), notes.exists()) == (0, False)
    assert run(beside(of), db).status == "whole"


@pytest.mark.parametrize(
    ("type", "options", "status"),
    [("Broken", {}, "void"), ("Refusing", {"word": "door"}, "invalid")],
)
def test_a_bad_control_ends_only_itself(db, tmp_path, type, options, status):
    """A control that cannot be opened or has too many errors leaves the backend's run whole, whose verdict
    says that it could not be read, and why."""
    outcome = run(beside(plan(suite(tmp_path, cases(6))), type, **options), db)
    control = of_control(db, outcome)
    assert (outcome.status, control.status) == ("whole", status)
    said = queries.verdict(db, outcome.run_id).content
    assert said["control"]["unread"] == f"its run {control.id} is {status}: {control.reason}"
    assert "could not be read" in verdict_words.control(said)
    assert said["control"]["cause"] == "none"


def test_a_void_backend_has_no_control(db, tmp_path):
    """Where the backend itself is broken there is nothing to compare, and the control is not run."""
    outcome = run(beside(plan(suite(tmp_path, cases(3)), "Broken")), db)
    assert outcome.status == "void"
    assert queries.count_runs(db) == 1


def test_a_name_with_runs_of_its_own(db, tmp_path):
    """A backend of the control's name that has runs of its own keeps its series to itself."""
    of = plan(suite(tmp_path, cases(3)))
    other = run(replace(of, backend=frozen()), db)
    with pytest.raises(StoreError, match=rf"called mine-control, and .* of its own \(run {other.run_id}\)"):
        run(beside(of), db)
    assert queries.count_runs(db) == 1


# What the verdict says


def nights(db, tmp_path, number=6):
    """Good nights of both, and their plan."""
    of = beside(plan(suite(tmp_path, cases(16))))
    for _ in range(number):
        assert run(of, db).status == "whole"
    return of


def test_both_fall(db, tmp_path):
    """Where the control falls in the same hours the verdict stays worse, and says the cause is shared."""
    of = nights(db, tmp_path)
    fallen = replace(of, backend=replace(of.backend, options=LOSES), control=frozen(**LOSES))
    outcome = run(fallen, db)
    content = queries.verdict(db, outcome.run_id).content
    assert (content["verdict"], content["lost"], content["control"]["cause"]) == ("worse", LOST, "shared")
    assert content["control"]["fell"] is True
    assert verdict_words.control(content).startswith(
        "Shared cause (provider, judge, machine): the control tests.collectors.odd_backends:Shelf fell"
    )
    assert queries.verdict(db, of_control(db, outcome).id).verdict == "worse"
    assert shapes.verdict(content, [])["control"]["nights"] == 7
    assert run(fallen, db).status == "whole"  # looks at a control are no reason against its next night


def test_the_backend_alone_falls(db, tmp_path):
    """What the control still passes is the backend's own doing, said as soon as that is beyond chance."""
    of = nights(db, tmp_path)
    fallen = replace(of, backend=replace(of.backend, options=LOSES))
    told = [queries.verdict(db, run(fallen, db).run_id).content["control"] for _ in range(3)]
    assert [(one["lost"], one["gained"], one["cause"]) for one in told] == [
        (3, 0, "cannot tell"),
        (6, 0, "cannot tell"),
        (9, 0, "backend"),
    ]
    assert [one["fell"] for one in told] == [False] * 3
    assert told[-1]["since"] == max(row.id for row in queries.runs(db, backends=["mine"]) if not row.subset)


def test_an_unread_control_says_nothing_of_tonight(db, tmp_path):
    """A fall in a night whose control is broken has a cause that cannot be told, whatever earlier nights
    were like."""
    of = nights(db, tmp_path)
    fallen = replace(of, backend=replace(of.backend, options=LOSES), control=frozen(nothing_it_knows=True))
    content = queries.verdict(db, run(fallen, db).run_id).content
    assert (content["verdict"], content["control"]["cause"]) == ("worse", "cannot tell")
    assert content["control"]["nights"] == 6
    assert "so whether the cause is shared cannot be told" in verdict_words.control(content)


def test_a_new_release_begins_anew(db, tmp_path):
    """Nights of another frozen release are not counted in."""
    of = nights(db, tmp_path, 2)
    outcome = run(beside(of, "Counted"), db)
    assert queries.verdict(db, outcome.run_id).content["control"]["nights"] == 1


# On the command line


@pytest.fixture
def losing(tmp_path, db, monkeypatch):
    """A folder with six good nights of a backend that now, in another configuration, loses three cases, and
    so does its control."""
    nights(db, tmp_path)
    monkeypatch.setattr("collectors.configured.control_config", lambda settings, name: frozen(**LOSES))
    return project(tmp_path, LOSING.format(type="Shelf"), cases(16))


SHARED = (
    "Shared cause (provider, judge, machine): the control tests.collectors.odd_backends:Shelf fell in the "
    "same hours. 0 cases lost and 0 gained in 1 night against it."
)


def test_the_verdict_tells_the_cause(losing, ask):
    """`run` says at once that the cause is shared, `verdict` beside the evidence, --json under `control`;
    `runs` lists both arms."""
    ran = ask(losing, "run", "--suite", "small", "--backend", "mine")
    assert SHARED in ran.stderr
    listed = one_document(ask(losing, "runs", "--json"))["runs"]
    control, own = [row["id"] for row in listed if not row["subset"]][:2]
    assert [row["backend"] for row in listed[:4]] == ["mine", "mine-control", "mine-control", "mine"]
    assert [row["control_of"] for row in listed[:4]] == [None, None, own, None]
    told = ask(losing, "verdict", str(own))
    assert (told.returncode, told.stdout.splitlines()[0].split(":")[0]) == (1, "Suspected")
    assert f"  {SHARED}" in told.stdout.splitlines()
    document = one_document(ask(losing, "verdict", str(own), "--json"))
    assert (document["verdict"], document["lost"]) == ("worse", LOST)
    told = [document["control"][name] for name in ("run_id", "cause", "lost", "gained", "evidence")]
    assert told == [control, "shared", 0, 0, SHARED]


def test_a_control_is_looked_at_by_the_runner_alone(losing, ask):
    """A look at a control that was cut short stands in nobody's way, and none can be asked for."""
    ask(losing, "run", "--suite", "small", "--backend", "mine")
    with closing(opened(losing)) as record:
        control, look = (row.id for row in queries.runs(record, backends=["mine-control"], limit=2)[::-1])
        with record.write() as connection:
            connection.execute(m.run.update().where(m.run.c.id == look).values(status="interrupted"))
    nothing = ask(losing, "run", "--resume")
    assert (nothing.returncode, "no run is interrupted" in nothing.stderr) == (3, True)
    assert "is a look at a control" in ask(losing, "run", "--resume", str(look)).stderr
    asked = ask(losing, "verdict", str(control), "--look")
    assert (asked.returncode, "mine-control is no backend that is configured" in asked.stderr) == (1, True)


def test_the_gate_tells_the_cause(losing, ask):
    """A gate fails as before, and says that the cause is shared."""
    told = ask(losing, "gate", "--suite", "small", "--backend", "mine")
    assert told.returncode == 1
    assert SHARED in told.stdout


def test_a_control_is_resumed_by_its_run(losing, ask):
    """Who names a control to be resumed is told which run takes it along; it is not resumed by itself."""
    with closing(opened(losing)) as record:
        public = backend_public(configured(losing / "memtrend.toml"), "mine")
        of = beside(plan(suite(losing, cases(16)), public_config=public))
        stop = threading.Event()
        outcome = run(of, record, stop=stop, on_progress=stop_after(3, stop))
        control = of_control(record, outcome).id
    refused = ask(losing, "run", "--resume", str(control))
    assert refused.returncode == 3
    assert f"run {control} is the control of run {outcome.run_id}, which takes it along" in refused.stderr
    assert ask(losing, "run", "--resume", "--json").returncode == 0
    with closing(opened(losing)) as record:
        assert {row.status for row in queries.runs(record, ids=[outcome.run_id, control])} == {"whole"}
        with record.write() as connection:
            connection.execute(m.run.update().where(m.run.c.id == control).values(status="interrupted"))
    alone = ask(losing, "run", "--resume", str(control))
    assert (alone.returncode, "which is whole: it stays as it is" in alone.stderr) == (3, True)
