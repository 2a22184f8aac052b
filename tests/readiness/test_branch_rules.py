"""What a git host tells of a branch says whether a push may be refused; what it keeps to itself is unknown."""

from __future__ import annotations

import pytest

from reconciler.core.readiness.branch_rules import BranchRules, HostAnswer, HostSoftware, rule_paths, rules_result
from reconciler.core.readiness.check import Readiness
from reconciler.core.readiness.git import template_source_results
from reconciler.errors import Problem, Severity
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from reconciler.model.workload import Json

GITHUB, GITLAB, GITEA = HostSoftware
NO_PUSH_RULES: dict[str, Json] = {
    "commit_message_regex": "",
    "commit_message_negative_regex": None,
    "member_check": False,
    "prevent_secrets": True,
    "max_file_size": 5,
    "reject_unsigned_commits": False,
}
RULED: dict[str, Json] = {"protected": True, "effective_branch_protection_name": "place*"}
SIGNED: dict[str, Json] = {"rule_name": "place*", "require_signed_commits": True}
PAGE = "https://git.example.com/settings"


@pytest.mark.parametrize(
    ("software", "answers", "readiness", "seen"),
    [
        (GITHUB, [(200, []), (404, {})], Readiness.OK, "none of GitHub's refuses a push"),
        (GITHUB, [(200, [{"type": "deletion"}]), (200, {"protected": False})], Readiness.OK, "none of GitHub's"),
        (GITHUB, [(200, [{"type": "pull_request"}]), (200, {})], Readiness.UNKNOWN, "has the rules pull_request"),
        (GITHUB, [(200, []), (200, {"protected": True})], Readiness.UNKNOWN, "tells administrators alone"),
        (
            GITHUB,
            [(404, {"message": "Not Found"}), (404, {})],
            Readiness.UNKNOWN,
            "not tell them to this account (404)",
        ),
        (GITLAB, [(200, {"can_push": True}), (404, {})], Readiness.OK, "GitLab lets this account push"),
        (GITLAB, [(200, {"can_push": True}), (200, None)], Readiness.OK, "GitLab lets this account push"),
        (GITLAB, [(200, {"can_push": True}), (403, {"message": "403"})], Readiness.OK, "GitLab lets this account"),
        (GITLAB, [(200, {"can_push": True}), (200, NO_PUSH_RULES)], Readiness.OK, "GitLab lets this account push"),
        (
            GITLAB,
            [(200, {"can_push": True}), (200, {**NO_PUSH_RULES, "commit_message_regex": "^JIRA"})],
            Readiness.UNKNOWN,
            "has the push rules commit_message_regex",
        ),
        (GITLAB, [(200, {"can_push": False}), (200, {})], Readiness.MISSING, "the branch is protected"),
        (GITLAB, [(404, {"message": "Not Found"}), (200, {})], Readiness.UNKNOWN, "once the branch is there"),
        (GITEA, [(200, {"user_can_push": False}), (200, [])], Readiness.MISSING, "does not let this account push"),
        (GITEA, [(200, {"user_can_push": True, "protected": False}), (200, [])], Readiness.OK, "lets this account"),
        (GITEA, [(200, {"user_can_push": True, "protected": True}), (403, {})], Readiness.OK, "administrators alone"),
        (
            GITEA,
            [(200, {"user_can_push": True, **RULED}), (200, [7, SIGNED | {"rule_name": "x"}])],
            Readiness.OK,
            "lets",
        ),
        (GITEA, [(0, None), (0, None)], Readiness.UNKNOWN, "does not tell them to this account (0)"),
        (GITEA, [(200, "x"), (200, "x")], Readiness.UNKNOWN, "does not tell them to this account (200)"),
    ],
)
def test_rules_of_a_host_are_told(
    software: HostSoftware, answers: list[tuple[int, Json]], readiness: Readiness, seen: str
) -> None:
    paths = rule_paths(software, "acme/fleet", "placements")
    told = {path: HostAnswer(status=status, body=body) for path, (status, body) in zip(paths, answers, strict=True)}
    result = rules_result("placements", BranchRules(software=software, project="acme/fleet", page=PAGE, answers=told))
    assert result is not None
    assert (result.readiness, seen in result.seen) == (readiness, True), result
    assert bool(result.remedy) is (readiness is not Readiness.OK)


@pytest.mark.parametrize(
    ("software", "bodies"),
    [
        (GITHUB, [[{"type": "required_signatures"}], {"protected": False}]),
        (GITLAB, [{"can_push": True}, {**NO_PUSH_RULES, "reject_unsigned_commits": True}]),
        (GITEA, [{"user_can_push": True, **RULED}, [{"rule_name": "main"}, SIGNED]]),
    ],
)
@pytest.mark.parametrize(
    ("signed", "readiness", "words"),
    [
        (False, Readiness.MISSING, "OVERSPILL_SIGNING_KEY_FILE"),
        (True, Readiness.OK, ""),
    ],
)
def test_rule_of_signed_commits_is_met_by_a_key(
    software: HostSoftware, bodies: list[Json], signed: bool, readiness: Readiness, words: str
) -> None:
    paths = rule_paths(software, "acme/fleet", "placements")
    told = {path: HostAnswer(status=200, body=body) for path, body in zip(paths, bodies, strict=True)}
    rules = BranchRules(software=software, project="acme/fleet", page=PAGE, answers=told, signed=signed)
    result = rules_result("placements", rules)
    assert result is not None
    assert result.readiness is readiness
    assert words in result.remedy


def test_names_of_branches_and_projects_are_quoted() -> None:
    path, push_rule = rule_paths(GITLAB, "acme/fleet", "placements/worker 2")
    assert push_rule == "/api/v4/projects/acme%2Ffleet/push_rule"
    assert path == "/api/v4/projects/acme%2Ffleet/repository/branches/placements%2Fworker%202"


@pytest.mark.parametrize(
    ("severity", "readiness"), [(Severity.ERROR, Readiness.MISSING), (Severity.WARNING, Readiness.UNKNOWN)]
)
def test_unreadable_source_is_told_with_its_field_and_without_secrets(severity: Severity, readiness: Readiness) -> None:
    field, hint = "spec.from.repository.url", "try https://bot:" + "hunter-2@git.example.com/a"
    problem = Problem(path="vllm.yaml", line=7, field=field, message="is unknown", hint=hint, severity=severity)
    (result,) = template_source_results(Desired(commit=CommitId("tip"), problems=(problem,)))
    assert (result.readiness, result.subject, result.seen) == (readiness, f"vllm.yaml:7: {field}", "is unknown")
    assert result.remedy == "try https://<redacted>@git.example.com/a; then `overspill check`"
