"""A template that is made from the live object on the primary, through an image bump there."""

from __future__ import annotations

import copy

import pytest

from reconciler.core.observe.kubernetes.live_objects import observed_object
from reconciler.core.recording.pass_record import RECORD, read_record
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.source import SourceReader
from reconciler.lab.replay import Replay
from reconciler.model.plan import Reason
from tests.builders.fleet_files import errors, warnings
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import OURS, MemoryRepository

LIVE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "vllm",
        "namespace": "demo",
        "uid": "5f6c",
        "resourceVersion": "81",
        "annotations": {"deployment.kubernetes.io/revision": "3"},
    },
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "vllm"}},
        "template": {
            "metadata": {"labels": {"app": "vllm"}},
            "spec": {"containers": [{"name": "server", "image": "registry.example.com/vllm:1.0"}]},
        },
    },
    "status": {"readyReplicas": 4},
}
TEMPLATE = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata: {name: vllm, namespace: kubeslice-demo}
spec:
  workspaceName: llm
  burstDuration: 10m
  from:
    workload: {kind: Deployment, namespace: demo, name: vllm}
"""


def live(image="registry.example.com/vllm:1.0", replicas=4, **env):
    manifest = copy.deepcopy(LIVE)
    manifest["spec"]["replicas"] = replicas
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    container["image"] = image
    if env:
        container["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return (observed_object(manifest),)


class Records:
    """Keeps what is recorded, as it is written."""

    def __init__(self):
        self.documents = []

    def append(self, record):
        self.documents.append(RECORD.encode(record))


@pytest.fixture
def passes():
    passes = Passes(MemoryRepository({**SOURCE_FILES, "template.yaml": TEMPLATE}))
    passes.objects = live()
    passes.missing = 2
    return passes


def deployed(outcome):
    (manifest,) = (
        data.decode()
        for path, data in outcome.rendered.commits[-1].writes.items()
        if path.endswith("deployment-vllm.yaml")
    )
    return manifest


def said(outcome):
    return " ".join(outcome.rendered.commits[-1].message.split())


def short(placement):
    return f"Deployment/demo/vllm@{placement.made_from.digest[:19]}"


def held(outcome):
    return [each.message for each in outcome.plan.suppressed if each.reason is Reason.SOURCE_UNREAD]


def test_a_burst_runs_what_its_primary_runs(passes):
    outcome = passes.run_once()
    assert 'image: "registry.example.com/vllm:1.0"' in deployed(outcome)
    assert "replicas: 2" in deployed(outcome)
    assert "revision" not in deployed(outcome)
    (placement,) = passes.placements()
    assert placement.made_from.text == f"Deployment/demo/vllm@{placement.made_from.digest}"
    assert f"Overspill-From: {placement.made_from.text} " in said(outcome)


def test_an_image_bump_reaches_standing_bursts_and_the_next_one(passes):
    passes.run_once()
    (before,) = passes.placements()
    passes.objects = live("registry.example.com/vllm:1.1")
    outcome = passes.run_once()
    (after,) = passes.placements()
    assert 'image: "registry.example.com/vllm:1.1"' in deployed(outcome)
    assert said(outcome).startswith(
        "update(llm/vllm): 2 replicas on worker-2 Its source runs registry.example.com/vllm:1.1 now,"
        " registry.example.com/vllm:1.0 before. It is made from"
        f" {short(after)} now, and was from {short(before)}."
    )
    assert (after.name, after.replicas, after.expires_at) == (before.name, before.replicas, before.expires_at)
    assert not passes.run_once().commits
    passes.missing = 6
    assert "vllm:1.1" in deployed(passes.run_once())


def test_a_scaled_primary_is_no_other_version(passes):
    passes.run_once()
    passes.objects = live(replicas=9)
    assert not passes.run_once().commits


def test_a_deleted_object_holds_back_and_leaves_what_stands(passes):
    passes.run_once()
    before = passes.placements()
    passes.objects, passes.missing = (), 6
    outcome = passes.run_once()
    assert passes.placements() == before
    (message,) = held(outcome)
    assert message.startswith("worker-1 reports no Deployment demo/vllm (mend spec.from.workload, or list it")
    desired = outcome.decision.inputs.desired
    assert not errors(desired)
    assert any(message.startswith("template.yaml:7: spec.from: worker-1 reports no") for message in warnings(desired))


def test_a_restart_beside_an_unseen_primary_leaves_what_stands(passes):
    passes.run_once()
    before = passes.placements()
    passes.blind = frozenset({"worker-1"})
    passes.restart()
    passes.run()
    assert passes.placements() == before
    passes.blind = frozenset()
    assert not passes.run_once().commits


def test_a_credential_in_the_object_comes_into_no_commit_and_no_recording(passes):
    token = "hf_" + "Zk3q" * 9  # the form of a token, and none
    passes.objects, passes.recording = live(HF_TOKEN=token), Records()
    outcome = passes.run_once()
    assert not passes.placements()
    assert "may not lie in git" in held(outcome)[0]
    assert token not in str(passes.recording.documents)


def test_a_pinned_template_deploys_no_other_version(passes):
    passes.run_once()
    (placement,) = passes.placements()
    pinned = f"{TEMPLATE}    pin: {placement.made_from.digest}\n"
    passes.repository.person("source", {"template.yaml": pinned})
    assert not passes.run_once().commits
    passes.objects, passes.missing = live("registry.example.com/vllm:1.1"), 6
    outcome = passes.run_once()
    assert passes.placements() == [placement]
    assert held(outcome)[0].startswith("Deployment demo/vllm is sha256-")
    passes.repository.person("source", {"template.yaml": TEMPLATE})
    passes.run_once()
    assert {each.made_from.images for each in passes.placements()} == {"registry.example.com/vllm:1.1"}


def test_a_recording_decides_the_same_again(passes):
    passes.recording = Records()
    passes.run_once()
    passes.objects = live("registry.example.com/vllm:1.1")
    passes.run_once()
    repository = passes.repository
    replay = Replay(repository, SourceReader(repository), BranchReader(repository), OURS)
    again = [replay.decide(read_record(document)) for document in passes.recording.documents]
    assert [one.parting for one in again] == [None, None]
    assert [len(one.plan.changes) for one in again] == [1, 1]


COMPANIONS = f"{TEMPLATE}    companions: [service/vllm, configmap/settings]\n"


def beside(model="llama", **names):
    """Return the ConfigMap and the Service of the workload; `names` changes their names, None leaves one out."""
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"MODEL": model}}
    service = {"apiVersion": "v1", "kind": "Service"}
    service["spec"] = {"selector": {"app": "vllm"}, "clusterIP": "10.0.0.1", "ports": [{"port": 80}]}
    named = {"settings": settings, "vllm": service}
    return tuple(
        observed_object({**each, "metadata": {"name": names.get(name, name), "namespace": "demo", "uid": "1"}})
        for name, each in named.items()
    )


def written(outcome):
    return {
        path.rpartition("/")[2]: data.decode()
        for path, data in outcome.rendered.commits[-1].writes.items()
        if "/manifests/" in path
    }


@pytest.fixture
def together(passes):
    passes.repository.person("source", {"template.yaml": COMPANIONS})
    passes.objects = (*live(), *beside())
    return passes


def test_companions_come_along_as_they_are_on_the_primary(together):
    files = written(together.run_once())
    assert sorted(files) == [
        "00-overspill-marker.yaml",
        "01-configmap-settings-configmap-settings.yaml",
        "02-deployment-vllm-deployment-vllm.yaml",
        "03-service-vllm-service-vllm.yaml",
    ]
    assert "llama" in "".join(files.values())
    assert "10.0.0.1" not in "".join(files.values())


def test_a_changed_companion_is_another_version_of_the_source(together):
    together.run_once()
    (before,) = together.placements()
    together.objects = (*live(), *beside("mistral"))
    outcome = together.run_once()
    (after,) = together.placements()
    assert "mistral" in "".join(written(outcome).values())
    assert said(outcome).startswith("update(llm/vllm): 2 replicas on worker-2")
    assert f"It is made from {short(after)} now, and was from {short(before)}." in said(outcome)
    together.repository.person("source", {"template.yaml": f"{COMPANIONS}    pin: {before.made_from.digest}\n"})
    together.missing = 6
    assert held(together.run_once())[0].startswith("Deployment demo/vllm is sha256-")


def test_a_companion_that_is_gone_holds_back_and_leaves_what_stands(together):
    together.run_once()
    before = together.placements()
    together.objects, together.missing = (*live(), *beside(settings="others")), 6
    (message,) = held(together.run_once())
    assert together.placements() == before
    assert message.startswith("worker-1 reports no ConfigMap demo/settings (make it, mend spec.from.companions, see")


def test_a_companion_with_a_credential_comes_into_no_commit_and_no_recording(together):
    token = "hf_" + "Zk3q" * 9  # the form of a token, and none
    together.objects, together.recording = (*live(), *beside(token)), Records()
    outcome = together.run_once()
    assert not together.placements()
    (message,) = held(outcome)
    assert message.startswith("ConfigMap demo/settings: data.MODEL: this looks like a Hugging Face token")
    assert token not in str(together.recording.documents)


def test_a_recording_with_companions_decides_the_same_again(together):
    together.recording = Records()
    together.run_once()
    together.objects = (*live(), *beside("mistral"))
    together.run_once()
    repository = together.repository
    replay = Replay(repository, SourceReader(repository), BranchReader(repository), OURS)
    again = [replay.decide(read_record(document)) for document in together.recording.documents]
    assert [(one.parting, len(one.plan.changes)) for one in again] == [(None, 1), (None, 1)]


@pytest.mark.parametrize(
    ("companion", "problem"),
    [
        ("secret/token", "'secret/token' is a Secret, and none is ever read (create it in each cluster"),
        ("deployment/vllm", "'deployment/vllm' is no ConfigMap or Service (try configmap/NAME or service/NAME)"),
        ("configmap/", "is no ConfigMap or Service"),
        ("service/../x", "is no ConfigMap or Service"),
        ("configmap/kube-root-ca.crt", "is of its cluster, and each cluster has its own (leave it out)"),
    ],
)
def test_only_config_maps_and_services_are_companions(passes, companion, problem):
    passes.repository.person("source", {"template.yaml": f"{TEMPLATE}    companions: [{companion}]\n"})
    (told,) = errors(passes.run_once().decision.inputs.desired)
    assert told.startswith("template.yaml:9: spec.from.companions[0]:")
    assert problem in told


def test_companions_need_a_workload(passes):
    text = TEMPLATE.replace(
        "workload: {kind: Deployment, namespace: demo, name: vllm}", "path: apps\n    companions: [service/a]"
    )
    passes.repository.person("source", {"template.yaml": text})
    told = errors(passes.run_once().decision.inputs.desired)
    assert any("has companions without a workload (list them in the other source)" in line for line in told)


def test_an_unlisted_kind_is_found_by_its_group(passes):
    passes.repository.person("source", {"template.yaml": TEMPLATE.replace("{kind", "{apiVersion: other/v1, kind")})
    assert held(passes.run_once())


def test_what_stands_ends_with_its_demand_though_its_object_is_unknown(passes):
    passes.missing = 4
    passes.run_once()
    before = passes.placements()
    passes.objects, passes.missing = (), 1
    for _ in range(3):
        passes.advance(61)
        passes.run()
    assert passes.placements() == before  # fewer replicas cannot be written without the object
    passes.missing = 0
    for _ in range(3):
        passes.advance(61)
        passes.run()
    assert not passes.placements()
