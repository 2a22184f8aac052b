"""Sources that a template may not be made from: an error of `check`, and refused by the daemon before it reads."""

from __future__ import annotations

import pytest

from reconciler.core.fleet.assemble import assemble
from reconciler.core.fleet.read_file import parse_file
from reconciler.errors import Severity
from reconciler.model.ids import CommitId
from reconciler.model.manifest_source import RepositorySource, SourceContents
from reconciler.model.policy import Desired
from tests.builders.passes import SOURCE_FILES
from tests.fleet.test_sources import TEMPLATE

GOOD = "https://good.example.com/apps.git"
FLEET = SOURCE_FILES["fleet.yaml"].replace(
    "{engine",
    f"{{sourceRepositories: ['{GOOD}', 'git@good.example.com:apps.git'],"
    " argocd: {connection: {inCluster: true}}, engine",
)
OTHERS = """\
---
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata: {name: other}
spec: {primaryCluster: worker-1, clusters: [worker-1], namespaces: [theirs]}
"""
COMMIT = "1" * 40


def assembled(source: str, *, counted: str = "Deployment/demo/vllm", contents: SourceContents | None = None) -> Desired:
    """Assemble the fleet with a template that is made from a source."""
    template = TEMPLATE.replace("{path: apps/vllm}", source).replace("Deployment/demo/vllm", counted)
    assert source in template
    files = {
        **SOURCE_FILES, "fleet.yaml": FLEET, "template.yaml": template,
        "workspaces.yaml": SOURCE_FILES["workspaces.yaml"] + OTHERS,
    }  # fmt: skip # what is replaced, in a row
    parsed = {path: parse_file(text.encode()) for path, text in files.items()}
    return assemble(CommitId("c"), parsed, contents=contents or {})


def repository(url: str = GOOD, **fields: str) -> str:
    """Write a source in a repository, its values as YAML quotes them."""
    values = {"url": url, "path": "vllm"} | fields
    return "{repository: {" + ", ".join(f'{name}: "{value}"' for name, value in values.items()) + "}}"


def workload(**fields: str) -> str:
    values = {"kind": "Deployment", "namespace": "demo", "name": "vllm"} | fields
    return "{workload: {" + ", ".join(f'{name}: "{value}"' for name, value in values.items()) + "}}"


URLS = (
    "https://good.example.com.evil/apps.git",
    "https://good.example.com/apps.git.evil",
    "https://good.example.com/apps",
    "https://good.example.com/apps.git/",
    "https://good.example.com/apps.git/../secret.git",
    "https://good.example.com//apps.git",
    "https://good.example.com:444/apps.git",
    "https://good.example.com:443/apps.git",
    "https://GOOD.example.com/apps.git",
    "HTTPS://good.example.com/apps.git",
    "https://good.example.com@evil.example.com/apps.git",
    "https://token@good.example.com/apps.git",
    "https://ann:word@good.example.com/apps.git",
    "https://good.example.com/apps.git?x=1",
    "https://good.example.com/apps.git#main",
    " https://good.example.com/apps.git",
    "https://good.example.com/apps.git\\n",
    "https://good.example.com/apps.git\\u0000",
    "http://good.example.com/apps.git",
    "ssh://good.example.com/apps.git",
    "ssh://-oProxyCommand=reboot/apps.git",
    "git@good.example.com:other.git",
    "evil@good.example.com:apps.git",
    "good.example.com:apps.git",
    "git://good.example.com/apps.git",
    "file:///etc",
    "file:///srv/fleet.git",
    "/srv/fleet.git",
    "../fleet.git",
    ".",
    "",
    "ext::sh -c reboot",
    "fd::17",
    "--upload-pack=reboot",
    "-oProxyCommand=reboot",
)
REVISIONS = (
    "--upload-pack=reboot",
    "-q",
    "",
    "main:refs/heads/other",
    "+main",
    "refs/heads/*",
    "main..other",
    "main^",
    "main~1",
    "main@{1}",
    "@{-1}",
    "@",
    "main other",
    "main\\nother",
    "main\\u0000",
    ":/fix",
    "^main",
    "main.lock",
    "a//b",
    "/main",
    "main/",
    "ma*n",
    "ma?n",
    "main\\\\x",
)
PATHS = (
    "/etc",
    "..",
    "../other",
    "a/../../b",
    "a/..",
    ".",
    "./a",
    "a//b",
    "",
    ".git",
    ".git/config",
    "a/.git/hooks",
    "a/.GIT/config",
    ".gitmodules",
    "a\\\\b",
    "C:\\\\x",
    "-q",
    ":(glob)**",
    "~/x",
    "a\\u0000b",
    "a\\nb",
)
PINS = ("--output=x", "main", "1234567", "HEAD", "1" * 39, "1" * 41, "sha256-x", "../x", "G" * 40, COMMIT + "^")
FORBIDDEN = {
    **{f"url {url!r}": (repository(url), "spec.from.repository.url") for url in URLS},
    **{
        f"revision {text!r}": (repository(revision=text), "spec.from.repository.revision") for text in REVISIONS
    },
    **{f"path of a repository {text!r}": (repository(path=text), "spec.from.repository.path") for text in PATHS},
    **{f"path {text!r}": ('{path: "' + text + '"}', "spec.from.path") for text in PATHS},
    **{
        f"pin {pin!r} of {kind}": (source[:-1] + f', pin: "{pin}"}}', "spec.from.pin")
        for pin in PINS
        for kind, source in (("a path", "{path: a}"), ("a repository", repository()), ("a workload", workload()))
    },
    "object of another workspace": (workload(namespace="theirs"), "spec.from.workload.namespace"),
    "object of nobody": (workload(namespace="kube-system"), "spec.from.workload.namespace"),
    "namespace in capitals": (workload(namespace="DEMO"), "spec.from.workload.namespace"),
    "name that is a path": (workload(name="../theirs/vllm"), "spec.from.workload.name"),
    "name with a query": (workload(name="vllm?x=1"), "spec.from.workload.name"),
    "kind that is a path": (workload(kind="Deployment/../Secret"), "spec.from.workload.kind"),
    "Secret": (workload(kind="Secret", apiVersion="v1"), "spec.from.workload.kind"),
    "Secret beside a workload": (workload()[:-1] + ", companions: [secret/x]}", "spec.from.companions"),
    "companion of another namespace": (workload()[:-1] + ", companions: [configmap/theirs/x]}", "spec.from.companions"),
    "application that is a path": ('{application: {name: "../x"}}', "spec.from.application.name"),
    "application of another namespace": ('{application: {name: "theirs/x"}}', "spec.from.application.name"),
}  # fmt: skip # a row a case


@pytest.mark.parametrize(("source", "field"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_forbidden_source_is_an_error_and_is_never_read(source: str, field: str) -> None:
    desired = assembled(source)
    wrong = [problem for problem in desired.problems if problem.severity is Severity.ERROR]
    told = [each for each in wrong if each.field.startswith(field) and (each.hint or "is empty" in each.message)]
    assert told, [*map(str, desired.problems)]
    assert not desired.sources, "nothing of it is asked for"
    assert all(template.unread for template in desired.templates.values()), "nothing is deployed from it"


@pytest.mark.parametrize(
    "source",
    [repository(), repository("git@good.example.com:apps.git"), "{application: {name: vllm}}", "{path: apps/vllm}"],
)
def test_template_of_any_source_counts_no_workload_of_another_workspace(source: str) -> None:
    desired = assembled(source, counted="Deployment/theirs/vllm")
    (wrong,) = (problem for problem in desired.problems if problem.severity is Severity.ERROR)
    assert "'theirs' is of workspace other (it has demo)" in str(wrong)
    assert not desired.sources


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            RepositorySource(url="https://evil.example.com/x.git", revision="main", path="a"),
            "the Fleet names no reposi",
        ),
        (RepositorySource(url=GOOD, revision="main", path="a", namespace="theirs"), "'theirs' is of workspace other"),
    ],
    ids=["unlisted repository", "namespace of another workspace"],
)
def test_application_leads_no_further_than_its_template(place: RepositorySource, said: str) -> None:
    source = "{application: {name: vllm}}"
    (key,) = assembled(source).sources
    desired = assembled(source, contents={key: place})
    (wrong,) = (problem for problem in desired.problems if problem.severity is Severity.ERROR)
    assert wrong.field == "spec.from.application"
    assert said in wrong.message
    (template,) = desired.templates.values()
    assert template.unread


@pytest.mark.parametrize(
    "source",
    [
        repository(),
        repository("git@good.example.com:apps.git", revision="release/1.0"),
        repository()[:-1] + f", pin: '{COMMIT}'}}",
        workload(),
        workload()[:-1] + f", pin: sha256-{'a' * 64}, companions: [configmap/x]}}",
        "{application: {name: vllm}}",
        "{path: apps/vllm}",
    ],
)
def test_permitted_source_is_asked_for_without_an_error_of_its_own(source: str) -> None:
    desired = assembled(source)
    assert len(desired.sources) == 1
    assert not [problem for problem in desired.problems if problem.severity is Severity.ERROR]
