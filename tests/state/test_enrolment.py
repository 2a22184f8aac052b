"""Whoever followed the requests all along and whoever starts now have the same workloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.model.ids import PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Placements
from reconciler.model.request import Asker, Ended, Provisioning, RequestRecord
from reconciler.model.sorted_map import SortedMap
from reconciler.model.workload import DeploySpec
from tests.builders.examples import examples
from tests.builders.inputs import NOW
from tests.builders.requests import gpus, placed, record, request, wants

NAMES = ("a", "b", "c", "d")
FLEET = wants(request("worker-2", name="a"), request("worker-3", name="b"))
THING = ("apps/Deployment", "demo", "server")


def made(name: str, kind: int) -> RequestRecord:
    """Make a record of this name: of a file or the API, open or over, of one or two clusters, or a reservation."""
    asked = request("worker-2", *(["worker-3"] if kind % 2 else []), name=name)
    if kind == 2:
        asked = replace(asked, spec=DeploySpec(), ask=gpus(1))
    one = record(asked, asker=Asker.FILE if kind == 3 else Asker.API, key=f"key-{kind}")
    return replace(one, ended=Ended(status=Provisioning.FAILED, at=NOW, message="over")) if kind == 4 else one


def id_of(name: str) -> WorkloadId:
    return WorkloadId(WorkspaceName("llm"), TemplateName(name), request=True)


steps = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), max_size=2),
    st.lists(st.sampled_from(NAMES), max_size=2),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["worker-2", "worker-3"]), max_size=2),
    st.booleans(),
)


def answers_of(enrolment: Enrolment, placements: Placements) -> Mapping[str, object]:
    """Say all that anybody reads of an enrolment."""
    return {
        "templates": enrolment.desired.templates,
        "policies": enrolment.desired.policies,
        "entries": {workload: entry.record for workload, entry in enrolment.entries.items()},
        "reservations": enrolment.reservations,
        "differing": enrolment.changed_requests(),
        "lacking": enrolment.unplaced_requests(placements),
        "keyed": [sorted(enrolment.with_idempotency_key(f"key-{kind}")) for kind in range(6)],
        "makers": enrolment.reach.makers.of(THING),
    }


@examples(3)
@given(changes=st.lists(steps, min_size=1, max_size=8))
def test_an_enrolment_depends_on_what_there_is_alone(changes: list[tuple]) -> None:
    records: SortedMap[WorkloadId, RequestRecord] = SortedMap()
    placements = Placements()
    followed = Enrolment(FLEET, records)
    for put, drop, places, asked in changes:
        records = records.changed({id_of(name): made(name, kind) for name, kind in put.items()}, map(id_of, drop))
        there = [
            replace(placed(where), name=PlacementName(name), workload=id_of(name)) for name, where in places.items()
        ]
        placements = placements.changed({one.path: one for one in there}, list(placements)[: len(drop)])
        followed = followed.updated(FLEET, records)
        if asked:
            assert answers_of(followed, placements) == answers_of(Enrolment(FLEET, dict(records)), placements)
    assert answers_of(followed, placements) == answers_of(Enrolment(FLEET, dict(records)), placements)
