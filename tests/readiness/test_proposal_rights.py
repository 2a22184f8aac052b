"""Whether bursts can be proposed on a host is told where a policy has them approved."""

from __future__ import annotations

import pytest

from reconciler.core.readiness.branch_rules import HostAnswer, HostSoftware
from reconciler.core.readiness.check import Readiness
from reconciler.core.readiness.proposal_rights import ProposalRights, proposal_paths, proposal_result
from reconciler.model.workload import Json

GITHUB, GITLAB, GITEA = HostSoftware
MAY = {"permissions": {"push": True}}


@pytest.mark.parametrize(
    ("software", "answers", "readiness", "seen"),
    [
        (GITHUB, [(200, MAY), (200, [])], Readiness.OK, "GitHub shows them"),
        (GITHUB, [(200, MAY), (403, {})], Readiness.MISSING, "does not show them to this account (403)"),
        (GITEA, [(200, {"permissions": {"push": False}}), (200, [])], Readiness.MISSING, "and not push a branch"),
        (GITEA, [(200, MAY), (0, None)], Readiness.MISSING, "(0)"),
        (GITLAB, [(200, {"permissions": {"project_access": {"access_level": 30}}}), (200, [])], Readiness.OK, "GitLab"),
        (
            GITLAB,
            [(200, {"permissions": {"project_access": None, "group_access": {"access_level": 20}}}), (200, [])],
            Readiness.MISSING,
            "and not push",
        ),
    ],
)
def test_rights_are_told(
    software: HostSoftware, answers: list[tuple[int, Json]], readiness: Readiness, seen: str
) -> None:
    paths = proposal_paths(software, "acme/fleet")
    told = {path: HostAnswer(status=status, body=body) for path, (status, body) in zip(paths, answers, strict=True)}
    result = proposal_result(("gpu",), "acme/fleet", ProposalRights(software=software, answers=told))
    assert (result.readiness, seen in result.seen) == (readiness, True), result


def test_unknown_host_leaves_the_command() -> None:
    result = proposal_result(("gpu",), "srv/fleet", ProposalRights(software=None))
    assert (result.readiness, result.remedy) == (Readiness.UNKNOWN, "overspill approve WORKSPACE/WORKLOAD")
