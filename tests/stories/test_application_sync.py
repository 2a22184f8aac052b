"""A template that is made from an Application of Argo CD, through a sync of it on the primary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.fleet.sources.plain_manifests import read_source
from reconciler.core.recording.pass_record import RECORD, read_record
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Outcome
from reconciler.daemon.source import SourceReader
from reconciler.lab.replay import Replay
from reconciler.model.capacity import Observed
from reconciler.model.ids import BlobId
from reconciler.model.manifest_source import DeployedSources, RepositorySource, UnreadSource
from reconciler.model.plan import Reason
from reconciler.model.policy import Desired
from reconciler.model.tree import TreeEntry
from tests.builders.fleet_files import errors, warnings
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import OURS, MemoryRepository
from tests.fleet.test_sources import DEPLOYMENT, TEMPLATE
from tests.stories.test_image_bump import Records

URL = "https://git.example.com/apps.git"
ONE, TWO = "1" * 40, "2" * 40
FROM = "  from: {application: {name: vllm}}\n"
FLEET = SOURCE_FILES["fleet.yaml"].replace(
    "{engine: manifests}",
    f"{{engine: manifests, sourceRepositories: [{URL}], argocd: {{connection: {{context: control}}}}}}",
)
FILES = {
    **SOURCE_FILES,
    "fleet.yaml": FLEET,
    "template.yaml": TEMPLATE.replace("  from: {path: apps/vllm}\n", FROM),
}
PLAIN = DEPLOYMENT.replace(", namespace: demo", "")


class Synced(Passes):
    """Passes that see an Application, and the repository that it names once they are asked for that."""

    applications: DeployedSources
    followed: frozenset[RepositorySource] = frozenset()

    def __init__(self) -> None:
        self.images = {ONE: "vllm:1.0", TWO: "vllm:1.1"}
        super().__init__(MemoryRepository(FILES))

    def follow(self, desired: object) -> None:
        assert isinstance(desired, Desired)
        self.followed = frozenset(key.source for key in desired.sources if isinstance(key.source, RepositorySource))

    def observe(self) -> Observed:
        sources = {source: self.read(source) for source in self.followed}
        return replace(super().observe(), applications=self.applications, sources=sources)

    def read(self, source: RepositorySource):
        data = PLAIN.replace("vllm:1.0", self.images[source.at]).encode()
        entries = [
            TreeEntry(path=path, blob=BlobId("1" * 40), size=len(data)) for path in ("vllm/a.yaml", "vllm/old/a.yaml")
        ]
        return read_source(source, entries, lambda blobs: dict.fromkeys(blobs, data), source.at)

    def sync(self, commit: str, **changes: str) -> None:
        source = RepositorySource(url=URL, revision="", path="vllm", at=commit, recurse=False, namespace="demo")
        self.applications = {"vllm": replace(source, **changes)}


@pytest.fixture
def passes() -> Synced:
    passes = Synced()
    passes.sync(ONE)
    passes.missing = 2
    return passes


def deployed(outcome: Outcome) -> str:
    (manifest,) = (
        data.decode()
        for path, data in outcome.rendered.commits[-1].writes.items()
        if path.endswith("deployment-vllm.yaml")
    )
    return manifest


def held(outcome: Outcome) -> list[str]:
    return [each.message for each in outcome.plan.suppressed if each.reason is Reason.SOURCE_UNREAD]


def test_a_burst_runs_the_commit_that_argo_cd_has_synced(passes: Synced) -> None:
    outcome = passes.run_once()
    assert "registry.example.com/vllm:1.0" in deployed(outcome)
    (placement,) = passes.placements()
    assert placement.made_from.text == f"{URL}@{ONE}:vllm"
    assert f"Overspill-From: {URL}@{ONE}:vllm" in " ".join(outcome.rendered.commits[-1].message.split())


def test_a_sync_reaches_standing_bursts_and_a_commit_on_its_own_does_not(passes: Synced) -> None:
    passes.run_once()
    passes.sync(TWO)
    outcome = passes.run_once()
    assert "registry.example.com/vllm:1.1" in deployed(outcome)
    assert outcome.rendered.commits[-1].message.startswith("update(llm/vllm): 2 replicas on worker-2\n")
    passes.images["3" * 40] = "vllm:1.1"
    passes.sync("3" * 40)
    assert not passes.run_once().commits, "another commit with the same manifests changes nothing"


def test_a_recorded_sync_decides_the_same_again(passes: Synced) -> None:
    passes.recording = records = Records()
    passes.run_once()
    passes.sync(TWO)
    passes.run_once()
    repository = passes.repository
    replay = Replay(repository, SourceReader(repository), BranchReader(repository), OURS)
    again = [replay.decide(read_record(document)) for document in records.documents]
    assert [each.parting for each in again] == [None, None]
    assert [len(each.plan.changes) for each in again] == [1, 1]
    assert read_record(records.documents[1]).observed.applications == passes.applications
    assert RECORD.encode(read_record(records.documents[1])) == records.documents[1]


def test_an_application_that_is_no_source_holds_back_and_leaves_what_stands(passes: Synced) -> None:
    passes.run_once()
    before = passes.placements()
    passes.applications = {"vllm": UnreadSource(message="Application vllm is rendered by Helm", remedy="name it live")}
    passes.missing = 6
    outcome = passes.run_once()
    assert passes.placements() == before
    assert held(outcome)[0].startswith("Application vllm is rendered by Helm (name it live)")
    desired = outcome.decision.inputs.desired
    assert not errors(desired)
    assert any(warning.startswith("template.yaml:10: spec.from: Application vllm") for warning in warnings(desired))


def test_a_path_without_manifests_holds_back(passes: Synced) -> None:
    passes.sync(ONE, path="gone")
    assert held(passes.run_once()) == [f"no manifest lies at gone of {URL} (mend spec.from, or add the manifests)"]


def test_an_unseen_argo_cd_holds_back(passes: Synced) -> None:
    passes.applications = {}
    assert held(passes.run_once())[0].startswith("Argo CD is unseen, so that what Application vllm deploys is unknown")


def test_an_application_sends_the_daemon_to_no_repository_that_the_fleet_does_not_name(passes: Synced) -> None:
    passes.sync(ONE, url="https://elsewhere.example.com/apps.git")
    (message,) = held(passes.run_once())
    assert message.startswith("the Fleet names no repository https://elsewhere.example.com/apps.git (add it")


def test_a_pinned_template_deploys_no_other_commit(passes: Synced) -> None:
    pinned = FILES["template.yaml"].replace("{application", f"{{pin: '{ONE}', application")
    passes.repository.person("source", {"template.yaml": pinned})
    passes.run_once()
    (before,) = passes.placements()
    passes.sync(TWO)
    passes.missing = 6
    assert held(passes.run_once())[0].startswith(f"Application vllm is {TWO} now, and the template is pinned")
    assert passes.placements() == [before]


def test_files_that_lack_what_an_application_needs_are_told(passes: Synced) -> None:
    counted = "  annotations: {overspill.dev/workload: Deployment/demo/vllm}\n"
    passes.repository.person(
        "source",
        {
            "fleet.yaml": FLEET.replace("{connection: {context: control}}", "{}"),
            "other.yaml": FILES["template.yaml"].replace(counted, "").replace("name: vllm, names", "name: chat, names"),
        },
    )
    desired = passes.run_once().decision.inputs.desired
    assert any("spec.from.application: nothing says which object" in error for error in errors(desired)), errors(
        desired
    )
    assert any("spec.from: nothing says how Argo CD's own cluster is re" in warning for warning in warnings(desired))
