"""What LeaderWorkerSet would refuse is refused when its file is read, at its field and with a way out."""

from __future__ import annotations

import pytest

from reconciler.core.capacity.exclusive_topology import SUBGROUPS
from reconciler.core.validation.admission.table import check_admission
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.workload import Json
from tests.builders.workload_kinds import lws
from tests.workloads.test_kind_rules import findings


def made(**group: Json) -> Json:
    one = lws(2, 4)
    one["spec"]["leaderWorkerTemplate"].update(group)
    return one


def rolling(**fields: Json) -> Json:
    return lws(2, 4, rolloutStrategy={"rollingUpdateConfiguration": fields})


WRONG: list[tuple[Json, str, str]] = [
    (lws(-1), "spec.replicas", "is -1, and LeaderWorkerSet takes 0 to 1000000"),
    (lws(1_000_001), "spec.replicas", "is 1000001, and LeaderWorkerSet takes 0 to 1000000"),
    (lws(1, 0), "spec.leaderWorkerTemplate.size", "is 0, and LeaderWorkerSet takes 1 to 2147483647"),
    (
        lws(100_000, 100_000),
        "spec.leaderWorkerTemplate.size",
        "100000 groups of 100000 pods are more than LeaderWorkerSet can count",
    ),
    (
        made(subGroupPolicy={"subGroupSize": 5}),
        "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize",
        "subgroups of 5 do not share 4 pods, or 3 without the leader, evenly",
    ),
    (
        made(subGroupPolicy={"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}),
        "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize",
        "subgroups of 2 do not share 3 workers evenly",
    ),
    (lws(startupPolicy="Never"), "spec.startupPolicy", "'Never' is nothing that LeaderWorkerSet knows"),
    (
        rolling(maxSurge=0, maxUnavailable="0%"),
        "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable",
        "may not come to 0 replicas where maxSurge is 0",
    ),
    (
        rolling(maxSurge=0, maxUnavailable="25%"),
        "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable",
        "may not come to 0 replicas where maxSurge is 0",
    ),
    (
        rolling(maxUnavailable=0),
        "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable",
        "may not come to 0 replicas where maxSurge is 0",
    ),
    (
        rolling(maxSurge="some"),
        "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge",
        "is some, and LeaderWorkerSet takes a whole number or 0% to 100%",
    ),
    (
        lws(rolloutStrategy={"type": "Recreate"}),
        "spec.rolloutStrategy.type",
        "'Recreate' is nothing that LeaderWorkerSet knows",
    ),
]


@pytest.mark.parametrize(("manifest", "where", "message"), WRONG)
def test_it_is_told_at_its_field(manifest: Json, where: str, message: str) -> None:
    (finding,) = findings(manifest)
    assert (".".join(map(str, finding.loc[4:])), finding.message) == (where, message)
    assert finding.hint


@pytest.mark.parametrize("name", ["2cube", "a.b", "Cube", "a" * 64, "a-"])
def test_the_name_of_a_set_is_one_of_a_service(name: str) -> None:
    (finding,) = check_admission(lws() | {"metadata": {"name": name}}, (), NO_KINDS, rendered=False)
    assert finding.loc == ("metadata", "name")
    assert "cannot be the name of the set's Service" in finding.message


def test_domains_of_subgroups_need_subgroups() -> None:
    one = lws()
    one["metadata"]["annotations"] = {SUBGROUPS: "rack"}
    (finding,) = check_admission(one, (), NO_KINDS, rendered=False)
    assert finding.message == "asks for domains of subgroups, and the set has no subgroups"


@pytest.mark.parametrize(
    "manifest",
    [
        lws("{{ replicas }}"),
        lws(0),
        made(subGroupPolicy={"subGroupSize": 2}),
        made(subGroupPolicy={"subGroupSize": 3}),
        made(subGroupPolicy={"subGroupSize": 3, "subGroupPolicyType": "LeaderExcluded"}),
        rolling(maxSurge=1, maxUnavailable=0),
        rolling(maxSurge="1%", maxUnavailable=0),
        lws(0, rolloutStrategy={"rollingUpdateConfiguration": {"maxUnavailable": "25%", "maxSurge": 0}}),
        rolling(partition=1),
        lws(startupPolicy="{{ cluster.labels.policy }}"),
    ],
)
def test_what_is_right_or_not_filled_in_yet_is_taken(manifest: Json) -> None:
    assert findings(manifest) == []
