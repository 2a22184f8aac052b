"""Templates that are made from another repository, fetched beside the fleet repository."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.source_repositories import MAX_AGE, SourceRepositories
from reconciler.app.world import other_repositories
from reconciler.core.fleet.sources.plain_manifests import plain_manifests
from reconciler.core.recording.pass_record import RECORD, PassRecord, read_record
from reconciler.model.capacity import Observed
from reconciler.model.ids import CommitId
from reconciler.model.manifest_source import (
    RepositoryContents,
    RepositorySource,
    SourceContent,
    SourceKey,
    UnreadSource,
)
from reconciler.model.plan import Reason
from reconciler.model.policy import Desired, Fleet
from reconciler.settings import Settings
from tests.builders.fleet_files import errors
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.loopback import LoopbackHandler, LoopbackServer
from tests.fakes.memory_repository import MemoryRepository
from tests.fleet.test_sources import DEPLOYMENT, TEMPLATE

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
PATIENCE = timedelta(seconds=60)
URL = "https://git.example.com/apps.git"
READ = RepositorySource(url=URL, revision="main", path="vllm")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.moment = AT

    def now(self) -> datetime:
        return self.moment


@pytest.fixture
def apps(tmp_path: Path) -> Path:
    """Return a repository with the manifests of an application."""
    (tmp_path / "apps" / "vllm").mkdir(parents=True)
    commit(tmp_path / "apps", DEPLOYMENT)
    return tmp_path / "apps"


def commit(repository: Path, manifest: str) -> str:
    (repository / "vllm" / "deployment.yaml").write_text(manifest)
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*author, "commit", "-qm", "vllm")):
        subprocess.run(["git", "-C", repository, *words], check=True)
    done = subprocess.run(["git", "-C", repository, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def desired(*urls: str) -> Desired:
    keys = frozenset(SourceKey(RepositorySource(url=url, revision="main", path="vllm")) for url in urls)
    return Desired(commit=CommitId("c" * 40), fleet=Fleet(source_repositories=urls[:1]), sources=keys)


def test_content_is_read_renewed_and_kept_for_a_while(apps: Path, tmp_path: Path) -> None:
    clock, wakes = Clock(), Queue[str]()

    def opened(url: str, revision: str) -> GitRepository:
        assert url == READ.url, "a repository that the Fleet does not name is never opened"
        return GitRepository(str(apps), cache=tmp_path / "cache", source_branch=revision)

    view = SourceRepositories(opened, clock=clock, wake=wakes.put, patience=PATIENCE, every=timedelta(milliseconds=1))
    try:
        view.follow(desired(READ.url, "https://elsewhere.example.com/apps.git"))
        assert view.observe().sources.keys() == {READ}
        first = view.observe().sources[READ]
        assert isinstance(first, SourceContent)
        assert [manifest["kind"] for manifest in first.manifests] == ["Deployment"]
        newer = commit(apps, DEPLOYMENT.replace("vllm:1.0", "vllm:1.1"))
        seen = until(view, wakes, lambda content: isinstance(content, SourceContent) and content.version == newer)
        apps.rename(tmp_path / "gone")
        assert view.observe().sources[READ] == seen
        clock.moment += MAX_AGE + timedelta(seconds=1)
        lost = until(view, wakes, lambda content: isinstance(content, UnreadSource))
        assert isinstance(lost, UnreadSource)
        assert lost.remedy == "see whether this machine may read it"
    finally:
        view.close()


@pytest.mark.parametrize("failures", [[], [OSError("no space")]], ids=["closes", "fails to close"])
def test_a_repository_that_no_template_names_any_more_is_closed(
    apps: Path, tmp_path: Path, failures: list[OSError]
) -> None:
    closed = Queue[str]()

    class Watched(GitRepository):
        def close(self) -> None:
            super().close()
            closed.put("closed")
            if failures:
                raise failures.pop()

    def opened(url: str, revision: str) -> GitRepository:
        return Watched(str(apps), cache=tmp_path / "cache", source_branch=revision)

    view = SourceRepositories(opened, clock=Clock(), patience=PATIENCE)
    try:
        view.follow(desired(READ.url))
        view.follow(Desired(commit=CommitId("c" * 40), fleet=Fleet(source_repositories=(READ.url,))))
        assert closed.get(timeout=PATIENCE.total_seconds())
        view.follow(desired(READ.url))
        assert isinstance(view.observe().sources[READ], SourceContent)
    finally:
        view.close()
    assert closed.get(timeout=PATIENCE.total_seconds())


@pytest.mark.parametrize("listed", [True, False])
def test_source_gets_the_login_that_its_address_is_listed_with_and_never_the_fleets(
    tmp_path: Path, listed: bool
) -> None:
    logins: list[str] = []

    class Asking(LoopbackHandler):
        def do_GET(self) -> None:
            if login := self.headers.get("Authorization", ""):
                logins.append(base64.b64decode(login.removeprefix("Basic ")).decode())
            self.reply(401, headers={"WWW-Authenticate": 'Basic realm="git"'})

    with LoopbackServer(Asking) as host:
        url = f"{host.url}/apps.git"
        file = tmp_path / "logins"
        file.write_text(f"{(url if listed else f'{url}/other').replace('://', '://bot:of-bot@')}\n")
        settings = Settings(
            repo=f"{host.url}/fleet.git",
            git_username="ada",
            git_password="of ada",
            source_logins_file=file,
            cache_dir=tmp_path / "cache",
        )
        with other_repositories(settings, PATIENCE) as view:
            view.follow(desired(url))
            assert isinstance(view.observe().sources[replace(READ, url=url)], UnreadSource)
    assert {*logins} == ({"bot:of-bot"} if listed else set())


def test_a_commit_is_read_whatever_branch_it_is_on_and_only_once(apps: Path, tmp_path: Path) -> None:
    old, new = commit(apps, DEPLOYMENT.replace("vllm:1.0", "vllm:0.9")), commit(apps, DEPLOYMENT)
    subprocess.run(["git", "-C", apps, "branch", "-qm", "main", "trunk"], check=True)
    wanted = [replace(READ, revision="", at=at) for at in (old, new, "9" * 40)]

    def opened(url: str, revision: str) -> GitRepository:
        return GitRepository(str(apps), cache=tmp_path / "cache", source_branch=revision)

    view = SourceRepositories(opened, clock=Clock(), patience=PATIENCE, every=timedelta(milliseconds=1))
    try:
        fleet = Fleet(source_repositories=(URL,))
        view.follow(Desired(commit=CommitId("c" * 40), fleet=fleet, sources=frozenset(map(SourceKey, wanted))))
        first, second, lost = (view.observe().sources[source] for source in wanted)
        apps.rename(tmp_path / "gone")
        assert view.observe().sources[wanted[0]] is first
    finally:
        view.close()
    assert isinstance(first, SourceContent)
    assert isinstance(second, SourceContent)
    assert (first.version, second.version) == (old, new)
    assert "vllm:0.9" in str(first.manifests)
    assert isinstance(lost, UnreadSource)
    assert "fetching commit 999999999999 of" in lost.message


def until(
    view: SourceRepositories, wakes: Queue[str], holds: Callable[[SourceContent | UnreadSource], bool]
) -> SourceContent | UnreadSource:
    """Wait for the thread to read what is asked for; the bound is for a machine that has much else to do."""
    while not holds(content := view.observe().sources[READ]):
        wakes.get(timeout=PATIENCE.total_seconds())
    return content


FROM = "  from: {repository: {url: https://git.example.com/apps.git, path: vllm}}\n"
LISTED = SOURCE_FILES["fleet.yaml"].replace(
    "{engine", "{sourceRepositories: [https://git.example.com/apps.git], engine"
)
REFERRING = TEMPLATE.replace("  from: {path: apps/vllm}\n", FROM)


class RepositoryPasses(Passes):
    """Passes that see another repository."""

    sources: RepositoryContents

    def observe(self) -> Observed:
        return replace(super().observe(), sources=self.sources)


@pytest.fixture
def passes() -> RepositoryPasses:
    passes = RepositoryPasses(MemoryRepository({**SOURCE_FILES, "fleet.yaml": LISTED, "template.yaml": REFERRING}))
    passes.missing, passes.sources = 2, {READ: content("1" * 40)}
    return passes


def content(version: str, image: str = "vllm:1.0") -> SourceContent:
    read = plain_manifests("vllm", {"vllm/a.yaml": DEPLOYMENT.replace("vllm:1.0", image).encode()}, version)
    assert isinstance(read, SourceContent)
    return read


def test_a_burst_is_pinned_to_the_commit_of_the_other_repository(passes: RepositoryPasses) -> None:
    passes.run_once()
    (placement,) = passes.placements()
    assert placement.made_from.text == f"https://git.example.com/apps.git@{'1' * 40}:vllm"
    passes.sources = {READ: content("2" * 40)}
    assert not passes.run_once().commits, "another commit with the same manifests changes nothing"
    passes.sources = {READ: content("3" * 40, "vllm:1.1")}
    assert passes.run_once().rendered.commits[-1].message.startswith("update(llm/vllm): 2 replicas on worker-2\n")


def test_a_repository_that_cannot_be_read_holds_back(passes: RepositoryPasses) -> None:
    passes.sources = {READ: UnreadSource(message="fetching: no route", remedy="look")}
    outcome = passes.run_once()
    assert [each.message for each in outcome.plan.suppressed if each.reason is Reason.SOURCE_UNREAD] == [
        "fetching: no route (look)"
    ]


def test_a_repository_that_the_fleet_does_not_name_is_refused(passes: RepositoryPasses) -> None:
    passes.repository.person("source", {"fleet.yaml": SOURCE_FILES["fleet.yaml"]})
    outcome = passes.run_once()
    assert not passes.placements()
    assert "the Fleet names no repository https://git.example.com/apps.git" in str(outcome.problems)


def test_a_template_without_a_workload_is_an_error(passes: RepositoryPasses) -> None:
    counted = "  annotations: {overspill.dev/workload: Deployment/demo/vllm}\n"
    other = REFERRING.replace(counted, "").replace("name: vllm", "name: chat")
    passes.repository.person("source", {"other.yaml": other})
    (error,) = errors(passes.run_once().decision.inputs.desired)
    assert "spec.from.repository: nothing says which object" in error


def test_a_recording_holds_what_was_read(passes: RepositoryPasses) -> None:
    record = PassRecord(at=AT, source=CommitId("c" * 40), observed=Observed(sources=passes.sources))
    assert read_record(RECORD.encode(record)).observed.sources == passes.sources
