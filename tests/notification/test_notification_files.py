"""Who is told of what lies in the fleet repository, without secrets."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.model.bounds import NOTIFICATIONS_OF_WORKSPACE
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import AppriseReceiver, Importance, WebhookReceiver
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from tests.builders.fleet_files import FLEET, workspace

HEAD = "apiVersion: overspill.dev/v1alpha1\nkind: Notification\nmetadata: {name: chat}\nspec: "


def fleet(spec: str, path: str = "notifications/chat.yaml", **more: str) -> Desired:
    files = {**FLEET, path: HEAD + spec, **more}
    return assemble(CommitId(""), {name: parse_file(text.encode()) for name, text in files.items()})


def refused(spec: str) -> str:
    desired = fleet(spec)
    assert desired.notifications == {}
    return "\n".join(str(problem) for problem in desired.problems if problem.path.startswith("notifications"))


def test_receiver_hears_of_what_its_file_says() -> None:
    desired = fleet(
        "{workspaces: [llm], events: [Failed, HeldBack], severity: Warning, group: 1m, apprise: {urlFrom: llm-slack}}"
    )
    told = desired.notifications["chat"]
    assert told.receiver == AppriseReceiver(url_from="llm-slack")
    assert told.events == {EventKind.FAILED, EventKind.HELD_BACK}
    assert (told.workspaces, told.least, told.group) == (("llm",), Importance.WARNING, timedelta(minutes=1))
    assert told.secret == "llm-slack"
    assert not told.repeatable


def test_receiver_on_a_path_of_a_workspace_has_secrets_of_that_workspace_alone() -> None:
    files = {
        "fleet.yaml": (
            "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n"
            "spec: {paths: {Notification: ['teams/*/notifications/**']}}\n"
        ),
        "workspaces/llm.yaml": workspace("llm", "paths: [teams/llm/**]"),
    }
    spec = "{workspaces: [llm], webhook: {url: 'https://hooks.example.com/llm', secretFrom: pager}}"
    desired = fleet(spec, "teams/llm/notifications/chat.yaml", **files)
    told = desired.notifications["chat"]
    assert told.secret == "llm.pager"
    assert isinstance(told.receiver, WebhookReceiver)


def test_workspace_has_a_bounded_number_of_receivers_and_the_rest_is_told() -> None:
    most = NOTIFICATIONS_OF_WORKSPACE.most
    spec = "{workspaces: [llm], webhook: {url: 'https://hooks.example.com/llm', secretFrom: pager}}"
    one = HEAD + spec
    files = {
        "fleet.yaml": (
            "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n"
            "spec: {paths: {Notification: ['notifications/**', 'teams/**']}}\n"
        ),
        "workspaces/llm.yaml": workspace("llm", "paths: [teams/llm/**]"),
        "teams/llm/many.yaml": "\n---\n".join(one.replace("chat", f"chat{number}") for number in range(most + 300)),
    }
    desired = fleet("{apprise: {urlFrom: all}}", **files)
    assert len(desired.notifications) == most + 1
    assert "chat" in desired.notifications  # the whole fleet's own
    problems = [str(problem) for problem in desired.problems if problem.path == "teams/llm/many.yaml"]
    assert len(problems) >= 100
    assert "more problems" in problems[0]
    assert f"workspace llm has {most} Notifications before this one" in problems[1]


SHARED = {
    "fleet.yaml": (
        "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n"
        "spec: {paths: {Notification: ['notifications/**', 'teams/**']}}\n"
    ),
    "workspaces/llm.yaml": workspace("llm", "paths: [teams/llm/**, teams/shared/**]"),
    "workspaces/vision.yaml": workspace("vision", "paths: [teams/vision/**, teams/shared/**]"),
}
"""Two workspaces that share a path."""


@pytest.mark.parametrize(
    ("receiver", "field"),
    [
        ("webhook: {url: 'https://hooks.example.com/llm', secretFrom: pager}", "webhook.secretFrom"),
        ("apprise: {urlFrom: pager}", "apprise.urlFrom"),
        ("commitStatus: {tokenFrom: pager}", "commitStatus.tokenFrom"),
    ],
)
def test_secret_on_a_path_of_several_workspaces_is_refused(receiver: str, field: str) -> None:
    desired = fleet(f"{{workspaces: [vision], {receiver}}}", "teams/shared/chat.yaml", **SHARED)
    assert desired.notifications == {}
    assert any(
        f"teams/shared/chat.yaml:4: spec.{field}: this path is the own one of workspaces llm and vision, and secrets"
        " are of one workspace (move the file to a path that only one of them has)" in str(problem)
        for problem in desired.problems
    )


def test_receiver_without_a_secret_may_lie_on_a_path_of_several_workspaces() -> None:
    desired = fleet("{workspaces: [vision], kubernetesEvents: {}}", "teams/shared/chat.yaml", **SHARED)
    assert [*desired.notifications] == ["chat"]


def test_receiver_on_a_path_of_a_workspace_hears_of_no_other() -> None:
    files = {
        "fleet.yaml": (
            "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n"
            "spec: {paths: {Notification: ['teams/*/notifications/**']}}\n"
        ),
        "workspaces/llm.yaml": workspace("llm", "paths: [teams/llm/**]"),
    }
    for spec in ("{apprise: {urlFrom: pager}}", "{workspaces: [llm, vision], apprise: {urlFrom: pager}}"):
        assert fleet(spec, "teams/llm/notifications/chat.yaml", **files).notifications == {}


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST.", "pager.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]",
        "0.0.0.0", "[::]", "169.254.169.254", "[fe80::1]",
    ],
)  # fmt: skip # a list
def test_webhook_to_the_daemons_own_machine_is_for_fleet_wide_files_alone(host: str) -> None:
    spec = f"{{workspaces: [llm], webhook: {{url: 'https://{host}:8443/x', secretFrom: pager}}}}"
    assert "chat" in fleet(spec, **SHARED).notifications
    desired = fleet(spec, "teams/llm/chat.yaml", **SHARED)
    assert desired.notifications == {}
    (problem,) = (str(problem) for problem in desired.problems if "chat.yaml" in problem.path)
    assert problem.startswith("teams/llm/chat.yaml:4: spec.webhook.url: ")
    assert "is the daemon's own machine or link, which is not for a workspace to call (name an address" in problem


@pytest.mark.parametrize("path", ["notifications/chat.yaml", "teams/zoo/chat.yaml"])
def test_workspace_takes_no_name_of_a_fleet_wide_receiver(path: str) -> None:
    own = HEAD + "{workspaces: [llm], kubernetesEvents: {}}"
    files = SHARED | {"teams/llm/chat.yaml": own}
    desired = fleet("{apprise: {urlFrom: ops}}", path, **files)
    assert desired.notifications["chat"].receiver == AppriseReceiver(url_from="ops")
    (problem,) = (str(problem) for problem in desired.problems if "chat.yaml" in problem.path)
    assert problem.startswith("teams/llm/chat.yaml:3: metadata.name: Notification chat is the whole fleet's, in ")
    assert problem.endswith("(try another name)")
    assert f"in {path}:" in problem


@pytest.mark.parametrize(
    ("spec", "line", "words"),
    [
        ("{apprise: {urlFrom: 'slack://A/B/C'}}", 4, "spec.apprise.urlFrom: is no name of lower-case letters"),
        (
            "{webhook: {url: 'https://ann:hunter22hunter@hooks.example.com', secretFrom: s}}", 4,
            "spec.webhook.url: may not hold a password or a token",
        ),
        ("{webhook: {url: 'http://hooks.example.com/x', secretFrom: s}}", 4, "must begin with https://"),
        ("{webhook: {url: 'hooks', secretFrom: s}}", 4, "is no address of a webhook (try 'https://"),
        ("{}", 4, "spec: names no receiver"),
        ("{apprise: {urlFrom: a}, kubernetesEvents: {}}", 4, "has both apprise and kubernetesEvents"),
        ("{events: [Ended, Faled], apprise: {urlFrom: a}}", 4, "spec.events[1]: 'Faled' is no event (try 'Failed')"),
        ("{group: 2d, apprise: {urlFrom: a}}", 4, "spec.group: is longer than a day"),
    ],
)  # fmt: skip # a table
def test_file_that_is_wrong_is_refused_with_its_line_and_a_way_out(spec: str, line: int, words: str) -> None:
    told = refused(spec)
    assert f"notifications/chat.yaml:{line}: " in told
    assert words in told
    assert "hunter22" not in told
    assert "A/B/C" not in told


def test_unknown_workspace_is_a_warning() -> None:
    desired = fleet("{workspaces: [lmm], apprise: {urlFrom: a}}")
    assert "chat" in desired.notifications
    assert any("no file describes Workspace lmm" in str(problem) for problem in desired.problems)
