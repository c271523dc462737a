"""Rules about the steps of a case: does each of them do something, and does a question tell?"""

from __future__ import annotations

from collections.abc import Iterator

from collectors.history import History
from collectors.lint.findings import Found
from collectors.lint.view import View
from collectors.suite import Amend, Forget, ForgetUser, Probe, Scenario, Step


def idle(view: View) -> Iterator[Found]:
    """Steps that change nothing, and steps that no question follows."""
    cases = {case.probe.case: case for case in view.cases}
    for scenario in view.suite.scenarios:
        if scenario.probes and not scenario.standing:
            first, last = scenario.probes[0], scenario.probes[-1]
            yield from (Found(cases[first.case], told) for told in _without_effect(scenario))
            if after := scenario.steps[::-1].index(last):
                steps = "the last step" if after == 1 else f"the last {after} steps"
                yield Found(cases[last.case], f"no question follows {steps}")


def _without_effect(scenario: Scenario) -> Iterator[str]:
    changing = any(isinstance(step, Amend | Forget | ForgetUser) for step in scenario.steps)
    history = History()
    for step in scenario.steps if changing else ():
        yield from _idle(step, history)
        history.follow(step)


def _idle(step: Step, history: History) -> Iterator[str]:
    match step:
        case Forget(ids):
            gone = dict.fromkeys(id for id in ids if id not in history.held)
            yield from (f"{id} is forgotten, and is not there any more" for id in gone)
            yield from (f"{id} is forgotten twice" for id in dict.fromkeys(ids) if ids.count(id) > 1)
        case ForgetUser(user) if all(memory.user != user for memory in history.held.values()):
            yield f"all of user {user} is forgotten, of whom nothing is planted"
        case Amend(id, text) if id in history.held and history.held[id].text == text:
            yield f"{id} is amended to what it says already"
        case Amend(id, _) if id not in history.held:
            yield f"{id} is amended, and is forgotten already"
        case _:
            pass


def untold_forgetting(view: View) -> Iterator[Found]:
    """Something is forgotten, and no later question would notice that it is not."""
    cases = {case.probe.case: case for case in view.cases}
    for scenario in view.suite.scenarios:
        places = [n for n, step in enumerate(scenario.steps) if isinstance(step, Forget | ForgetUser)]
        later = [step for step in scenario.steps[places[-1] :] if isinstance(step, Probe)] if places else []
        if later and not any(_would_notice(probe) for probe in later):
            yield Found(cases[later[0].case], "something is forgotten, and may come back all the same")


def _would_notice(probe: Probe) -> bool:
    kinds = {"unwanted", "unwanted_first", "only", "at_most", "exactly", "count"}
    return any(expectation.kind in kinds for expectation in probe.expectations)
