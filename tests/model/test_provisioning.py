"""States of GPRs: every pair of a state and an event leads somewhere or is refused, and every name is read."""

import pytest

from reconciler.model.gpr import TRANSITIONS, GprEvent, GprState, read_state, step

E, S = GprEvent, GprState
LEGAL = {
    S.PENDING: {E.REFUSED: S.QUEUED, E.GRANTED: S.PROVISIONING, E.RELEASED: S.EARLY_RELEASED, E.FAILED: S.FAILED},
    S.QUEUED: {E.REFUSED: S.QUEUED, E.GRANTED: S.PROVISIONING, E.RELEASED: S.EARLY_RELEASED, E.FAILED: S.FAILED},
    S.PROVISIONING: {
        E.BOUND: S.SUCCESSFUL, E.EVICTED: S.QUEUED, E.RELEASED: S.DRAINING, E.OVER: S.DRAINING, E.FAILED: S.FAILED,
    },
    S.SUCCESSFUL: {
        E.BOUND: S.SUCCESSFUL, E.LOST: S.PROVISIONING, E.EVICTED: S.QUEUED, E.RELEASED: S.DRAINING,
        E.OVER: S.DRAINING, E.FAILED: S.FAILED,
    },
    S.DRAINING: {E.GONE: S.COMPLETED, E.GIVEN_BACK: S.EARLY_RELEASED, E.FAILED: S.FAILED},
    S.EARLY_RELEASED: {},
    S.COMPLETED: {},
    S.FAILED: {},
}  # fmt: skip # a table, a row a line


@pytest.mark.parametrize("event", GprEvent)
@pytest.mark.parametrize("state", GprState)
def test_every_pair_of_state_and_event_leads_on_or_is_refused(state: GprState, event: GprEvent) -> None:
    if event in LEGAL[state]:
        assert step(state, event) is LEGAL[state][event]
    else:
        with pytest.raises(KeyError):
            step(state, event)


def test_every_state_can_be_reached_and_every_way_comes_to_an_end() -> None:
    ends = {state for state in GprState if not LEGAL[state]}
    assert ends == {S.EARLY_RELEASED, S.COMPLETED, S.FAILED}
    for start in GprState:
        reached = {start}
        while more := {end for (begin, _), end in TRANSITIONS.items() if begin in reached} - reached:
            reached |= more
        assert reached & ends
        if start is S.PENDING:
            assert reached == {*GprState}


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Pending", S.PENDING), ("queued", S.QUEUED), ("PROVISIONING", S.PROVISIONING), ("Provisioned", S.SUCCESSFUL),
        ("successful", S.SUCCESSFUL), ("Draining", S.DRAINING), ("earlyreleased", S.EARLY_RELEASED),
        ("Complete", S.COMPLETED), ("Completed", S.COMPLETED), ("error", S.FAILED), ("Failed ", S.FAILED),
    ],
)  # fmt: skip # a table, a row a line
def test_a_state_is_read_under_all_its_names_in_any_case(text: str, state: GprState) -> None:
    assert read_state(text) is state


@pytest.mark.parametrize("text", ["Hibernating", "", "pend"])
def test_a_state_that_nobody_knows_stays_as_it_is_written(text: str) -> None:
    assert read_state(text) == text
    assert not isinstance(read_state(text), GprState)
