"""Templates that are made from plain manifests of the fleet repository, in place of a copy of them."""

from __future__ import annotations

import pytest

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.fleet.sources.patches import merged
from reconciler.core.fleet.sources.plain_manifests import in_source, plain_manifests, read_source
from reconciler.model.ids import BlobId, WorkloadId
from reconciler.model.manifest_source import PathSource, RepositorySource, SourceContent, UnreadSource
from reconciler.model.plan import Reason
from reconciler.model.tree import EntryType, TreeEntry
from tests.builders.fleet_files import errors
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository

VLLM = WorkloadId("llm", "vllm")
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm, namespace: demo}
spec:
  replicas: 4
  selector: {matchLabels: {app: vllm}}
  template:
    metadata: {labels: {app: vllm}, annotations: {note: "{{ .Values.kept }}"}}
    spec: {containers: [{name: server, image: registry.example.com/vllm:1.0}]}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: vllm, namespace: demo}
spec: {selector: {app: vllm}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: vllm, namespace: demo}
data: {MODEL: llama}
"""
TEMPLATE = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata:
  name: vllm
  namespace: kubeslice-demo
  annotations: {overspill.dev/workload: Deployment/demo/vllm}
spec:
  workspaceName: llm
  burstDuration: 10m
  from: {path: apps/vllm}
"""
FILES = {
    **SOURCE_FILES,
    "template.yaml": TEMPLATE,
    "apps/vllm/a-service.yaml": SERVICE,
    "apps/vllm/deployment.yaml": DEPLOYMENT,
}
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: demo}
data: {a: YQ==}
"""
PATCHES = """\
  patches:
  - clusters: [worker-2]
    patch:
      spec:
        template:
          spec:
            containers:
            - {name: server, env: [{name: REGION, value: "{{ cluster.name }}"}]}
"""


@pytest.fixture
def passes():
    return Passes(MemoryRepository(FILES))


def bump(passes, path="apps/vllm/deployment.yaml", old="vllm:1.0", new="vllm:1.1"):
    return passes.repository.person("source", {path: FILES[path].replace(old, new)})


def written(outcome, end):
    (commit,) = outcome.rendered.commits[-1:]
    return next(data.decode() for path, data in commit.writes.items() if path.endswith(end))


def burst(passes, missing=2):
    passes.missing = missing
    return passes.run_once()


def test_a_burst_is_made_from_the_manifests_with_its_own_replicas(passes):
    outcome = burst(passes)
    manifest = written(outcome, "deployment-vllm.yaml")
    assert "replicas: 2" in manifest
    assert "registry.example.com/vllm:1.0" in manifest
    assert '"{{ .Values.kept }}"' in manifest  # braces of a plain manifest are text
    kinds = [line for line in written(outcome, "placement.yaml").splitlines() if "    kind: " in line]
    assert [line.split()[-1] for line in kinds] == ["ConfigMap", "Deployment", "Service"]


def test_record_and_commit_pin_what_a_burst_was_made_from(passes):
    outcome = burst(passes)
    source = outcome.decision.inputs.desired.commit
    (placement,) = passes.placements()
    assert placement.made_from.text == f"{source}:apps/vllm"
    assert placement.made_from.images == "registry.example.com/vllm:1.0"
    assert f"Overspill-From: {source}:apps/vllm\n" in outcome.rendered.commits[-1].message


def test_a_changed_image_reaches_a_standing_burst_in_a_commit_of_its_own(passes):
    first = burst(passes).decision.inputs.desired.commit
    second = bump(passes)
    outcome = passes.run_once()
    assert "vllm:1.1" in written(outcome, "deployment-vllm.yaml")
    message = outcome.rendered.commits[-1].message
    assert message.startswith("update(llm/vllm): 2 replicas on worker-2\n")
    said = " ".join(message.split())
    assert "runs registry.example.com/vllm:1.1 now, registry.example.com/vllm:1.0 before" in said
    assert f"It is made from {second[:12]}:apps/vllm now, and was from {first[:12]}:apps/vllm." in said
    assert not passes.run_once().commits


def test_a_commit_that_leaves_the_manifests_alone_writes_nothing(passes):
    burst(passes)
    passes.repository.person("source", {"README.md": "hello"})
    bump(passes, old="replicas: 4", new="replicas: 9")  # the primary's own number is none of a burst's
    assert not passes.run_once().commits


def test_a_pinned_template_stays_at_its_commit(passes):
    pin = passes.repository.tips().source
    passes.repository.person("source", {"template.yaml": TEMPLATE.replace("vllm}\n", f"vllm, pin: {pin}}}\n")})
    bump(passes)
    outcome = burst(passes)
    assert "vllm:1.0" in written(outcome, "deployment-vllm.yaml")
    assert passes.placements()[0].made_from.text == f"{pin}:apps/vllm"


def test_a_resize_that_takes_up_another_version_says_so(passes):
    burst(passes)
    bump(passes)
    passes.missing = 3
    outcome = passes.run_once()
    messages = [" ".join(commit.message.split()) for commit in outcome.rendered.commits]
    assert [message.split(":")[0] for message in messages] == ["update(llm/vllm)", "resize(llm/vllm)"]


BROKEN = {
    "nothing there": ({}, ("apps/vllm/deployment.yaml", "apps/vllm/a-service.yaml"), "no manifest lies at apps/vllm"),
    "kustomize": ({"apps/vllm/kustomization.yaml": "resources: []\n"}, (), "apps/vllm is rendered by kustomize"),
    "no YAML": ({"apps/vllm/deployment.yaml": "a: [\n"}, (), "apps/vllm/deployment.yaml:"),
    "no object": ({"apps/vllm/deployment.yaml": "a: 1\n"}, (), "is no object with apiVersion and kind"),
    "an empty companion": ({"apps/vllm/a-service.yaml": ""}, (), "apps/vllm/a-service.yaml is empty"),
    "a companion of comments": ({"apps/vllm/a-service.yaml": "# x\n---\n"}, (), "a-service.yaml holds no object"),
    "a companion of no items": (
        {"apps/vllm/a-service.yaml": "apiVersion: v1\nkind: List\nitems: []\n"},
        (),
        "a-service.yaml holds no object",
    ),
    "an empty workload": ({"apps/vllm/deployment.yaml": "\n"}, (), "apps/vllm/deployment.yaml is empty"),
    "a directory for a companion": (
        {"apps/vllm/a-service.yaml/README.md": "x"},
        ("apps/vllm/a-service.yaml",),
        "apps/vllm/a-service.yaml is a directory",
    ),
    "a template": ({"apps/vllm/more.yaml": SOURCE_FILES["template.yaml"]}, (), "is a kind of Overspill"),
    "unsafe": (
        {"apps/vllm/deployment.yaml": DEPLOYMENT.replace("{containers:", "{hostNetwork: true, containers:")},
        (),
        "deployment-vllm.spec.template.spec.hostNetwork",
    ),
    "a Secret": (
        {"apps/vllm/secret.yaml": SECRET},
        (),
        "secret-key",
    ),
    "another namespace": (
        {"apps/vllm/deployment.yaml": DEPLOYMENT.replace("namespace: demo", "namespace: kube-system")},
        (),
        "kube-system",
    ),
}


@pytest.mark.parametrize(("writes", "removes", "said"), BROKEN.values(), ids=BROKEN)
def test_a_source_that_cannot_be_deployed_holds_back_and_reverts_nothing(passes, writes, removes, said):
    burst(passes)
    (before,) = passes.placements()
    passes.repository.person("source", writes, removes=removes)
    passes.missing = 6
    outcome = passes.run_once()
    assert not outcome.commits
    assert passes.placements() == [before]
    (held,) = (each for each in outcome.plan.suppressed if each.reason is Reason.SOURCE_UNREAD)
    assert said in held.message
    told = [error for error in errors(outcome.decision.inputs.desired) if error.startswith("template.yaml:")]
    assert all(error.startswith("template.yaml:10: spec.from: ") for error in told)
    assert any(said in error for error in told)


@pytest.mark.parametrize(("writes", "removes", "said"), BROKEN.values(), ids=BROKEN)
def test_a_source_that_names_the_counted_object_reverts_nothing_when_it_breaks(writes, removes, said):
    unnamed = TEMPLATE.replace("  annotations: {overspill.dev/workload: Deployment/demo/vllm}\n", "")
    passes = Passes(MemoryRepository({**FILES, "template.yaml": unnamed}))
    burst(passes)
    (before,) = passes.placements()
    passes.repository.person("source", writes, removes=removes)
    for _ in range(4):
        outcome = passes.run_once()
        passes.advance(60)
    assert passes.placements() == [before]
    (held,) = outcome.plan.suppressed
    assert held.reason is Reason.SOURCE_UNREAD
    assert said in held.message
    assert "2 replicas elsewhere stay until they expire" in held.message


def test_demand_that_has_gone_ends_a_burst_whose_source_is_gone(passes):
    burst(passes)
    passes.repository.person("source", {}, removes=("apps/vllm/deployment.yaml", "apps/vllm/a-service.yaml"))
    passes.missing = 0
    passes.run_once()
    passes.advance(90)
    passes.run_once()
    assert not passes.placements()


def test_a_patch_is_for_its_clusters_alone(passes):
    passes.repository.person("source", {"template.yaml": TEMPLATE + PATCHES})
    passes.free["worker-2"] = 1
    outcome = burst(passes)
    manifests = {
        path.split("/")[1]: data.decode()
        for commit in outcome.rendered.commits
        for path, data in commit.writes.items()
        if path.endswith("deployment-vllm.yaml")
    }
    assert "value: worker-2" in manifests["worker-2"]
    assert "REGION" not in manifests["worker-3"]


def test_a_patched_node_selector_decides_what_fits(passes):
    patch = "patch: {spec: {template: {spec: {nodeSelector: {gpu: h200}}}}}"
    passes.repository.person("source", {"template.yaml": f"{TEMPLATE}  patches: [{{clusters: [worker-2], {patch}}}]\n"})
    burst(passes)
    assert {placement.cluster for placement in passes.placements()} == {"worker-3"}


def asked(inputs, cluster):
    """Say what the template needs on a cluster, as a pass decides."""
    finder, template = CandidateFinder(inputs, WorkingPlan(inputs)), inputs.desired.templates[VLLM]
    (candidate,) = (each for each in finder.order(VLLM) if each.cluster == cluster)
    return finder.prerequisites(template, inputs.desired.policies[VLLM], candidate)


def spread(*subsets):
    """Write a WorkloadSpread of the template, of subsets in flow style."""
    return f"""\
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {{name: vllm, namespace: demo}}
spec:
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: vllm}}
  subsets: [{", ".join(subsets)}]
"""


@pytest.mark.parametrize("subset", ["{name: all}", "{name: all, patch: {spec: {priorityClassName: high}}}"])
def test_a_patch_refers_to_what_its_clusters_must_have_in_a_subset_too(passes, subset):
    container = "{name: server, envFrom: [{secretRef: {name: token}}]}"
    patch = f"{{clusters: [worker-2], patch: {{spec: {{template: {{spec: {{containers: [{container}]}}}}}}}}}}"
    files = {"template.yaml": f"{TEMPLATE}  patches: [{patch}]\n", "spread.yaml": spread(subset)}
    passes.repository.person("source", files)
    inputs = burst(passes).decision.inputs
    needed = {name: {each.name for each in asked(inputs, name)} for name in ("worker-2", "worker-3")}
    assert needed["worker-2"] - needed["worker-3"] == {"demo/token"}
    assert needed["worker-3"] <= needed["worker-2"]


def test_patched_objects_are_read_once_for_clusters_with_the_same_patches(passes):
    container = "{name: server, envFrom: [{secretRef: {name: NAME}}]}"
    patches = ", ".join(
        f"{{clusters: [{clusters}], patch: {{spec: {{template: {{spec: {{containers: [{secret}]}}}}}}}}}}"
        for clusters, secret in (
            ("worker-2, worker-3", container.replace("NAME", "token")),
            ("worker-4", container.replace("NAME", "other")),
        )
    )
    more = {
        "template.yaml": f"{TEMPLATE}  patches: [{patches}]\n",
        "clusters/d.yaml": SOURCE_FILES["clusters.yaml"].partition("---\n")[0].replace("worker-1", "worker-4"),
        "policies.yaml": SOURCE_FILES["policies.yaml"].replace("worker-3}", "worker-3}, {name: worker-4}"),
        "workspaces.yaml": SOURCE_FILES["workspaces.yaml"].replace("worker-3]", "worker-3, worker-4]"),
    }
    passes.repository.person("source", more)
    inputs = passes.run_once().decision.inputs
    first = asked(inputs, "worker-2")
    assert "demo/token" in [each.name for each in first]
    assert asked(inputs, "worker-3") is first
    assert "demo/other" in [each.name for each in asked(inputs, "worker-4")]
    passes.advance(3600)
    assert asked(passes.run_once().decision.inputs, "worker-2") is first
    bump(passes)
    again = asked(passes.run_once().decision.inputs, "worker-2")
    assert again is not first
    assert again == first


def test_a_patch_of_no_object_is_an_error_at_its_line(passes):
    passes.repository.person(
        "source", {"template.yaml": TEMPLATE + PATCHES.replace("    patch:\n", "    patch:\n      kind: Job\n")}
    )
    outcome = burst(passes)
    assert not passes.placements()
    (error,) = errors(outcome.decision.inputs.desired)
    assert error.startswith("template.yaml:13: spec.patches[0].patch: is for no object of the template (it has Config")


@pytest.mark.parametrize(
    ("patches", "told"),
    [
        (
            "[{clusters: [worker-2], patch: {spec: {template: {spec: {runtimeClasName: nvidia}}}}}]",
            ("spec.patches[0].patch.spec.template.spec", "try 'runtimeClassName'"),
        ),
        (
            "[{clusters: [worker-2], patch: {spec: {template: {spec: {containers: [{name: server, imag: x}]}}}}}]",
            ("spec.patches[0].patch.spec.template.spec.containers[0]", "try 'image'"),
        ),
        ("[{clusters: [worker-9], patch: {spec: {replicas: 2}}}]", ("spec.patches[0].clusters[0]", "try 'worker-")),
    ],
)
def test_a_patch_that_no_cluster_takes_is_an_error_at_its_place(patches, told):
    files = {**FILES, "template.yaml": f"{TEMPLATE}  patches: {patches}\n"}
    (error,) = errors(Passes(MemoryRepository(files)).run_once().decision.inputs.desired)
    assert error.startswith("template.yaml:11: ")
    assert all(part in error for part in told), error


def test_patches_of_one_cluster_may_complete_each_other():
    added = "{name: side, env: [{name: A, value: b}]}", "{name: side, image: registry.example.com/side:1.0}"
    patches = ", ".join(
        f"{{clusters: [worker-2], patch: {{spec: {{template: {{spec: {{containers: [{container}]}}}}}}}}}}"
        for container in added
    )
    files = {**FILES, "template.yaml": f"{TEMPLATE}  patches: [{patches}]\n"}
    assert not errors(Passes(MemoryRepository(files)).run_once().decision.inputs.desired)


REQUEST = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: tryout}
spec: {workspaceName: llm, workloadTemplateName: vllm, clusters: [worker-2]}
"""


def test_a_request_deploys_no_template_that_is_made_from_a_source(passes):
    passes.repository.person("source", {"request.yaml": REQUEST})
    outcome = passes.run_once()
    (error,) = errors(outcome.decision.inputs.desired)
    assert error.startswith("request.yaml:4: spec.workloadTemplateName: WorkloadTemplate vllm is made from a source")
    assert not passes.placements()


MERGES = {
    "objects are merged": ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
    "null deletes": ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    "named items are merged by name": (
        [{"name": "a", "x": 1}, {"name": "b"}],
        [{"name": "a", "x": 2}, {"name": "c"}],
        [{"name": "a", "x": 2}, {"name": "b"}, {"name": "c"}],
    ),
    "other lists are replaced": ([1, 2], [3], [3]),
    "a new object has no nulls": ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
}


@pytest.mark.parametrize(("value", "patch", "made"), MERGES.values(), ids=MERGES)
def test_a_patch_is_merged(value, patch, made):
    assert merged(value, patch) == made


def test_files_of_a_source_are_those_of_its_path():
    assert in_source("apps/vllm", "apps/vllm/more/deployment.yaml")
    assert in_source("apps/vllm.yaml", "apps/vllm.yaml")
    assert not in_source("apps/vllm", "apps/vllm-old/deployment.yaml")
    assert not in_source("apps/vllm", "apps/vllm/README.md")


LINK, SUBMODULE = EntryType.LINK, EntryType.SUBMODULE


@pytest.mark.parametrize(
    ("path", "entry", "kind", "recurse", "said"),
    [
        ("apps/vllm", "apps/vllm/service.yaml", LINK, True, "apps/vllm/service.yaml is a symbolic link, which is not"),
        ("apps/vllm", "apps/vllm/service.yaml", LINK, False, "apps/vllm/service.yaml is a symbolic link"),
        ("apps/vllm", "apps/vllm/more", LINK, True, "apps/vllm/more is a symbolic link"),
        (
            "apps/vllm",
            "apps/vllm/more/service.yml",
            SUBMODULE,
            True,
            "apps/vllm/more/service.yml is a submodule, whose",
        ),
        ("apps/vllm", "apps", SUBMODULE, True, "apps is a submodule"),
        ("apps/vllm", "apps/vllm", LINK, False, "apps/vllm is a symbolic link"),
        ("", "service.yaml", LINK, False, "service.yaml is a symbolic link"),
        ("apps/vllm", "apps/vllm/README.md", LINK, True, ""),
        ("apps/vllm", "apps/vllm/more", LINK, False, ""),
        ("apps/vllm", "apps/vllm/more/service.yaml", LINK, False, ""),
        ("apps/vllm", "apps/vllm-2/service.yaml", LINK, True, ""),
        ("apps/vllm", "docs/theme", SUBMODULE, True, ""),
    ],
)
def test_a_link_or_a_submodule_where_manifests_belong_is_an_error(path, entry, kind, recurse, said):
    source = RepositorySource(url="u", revision="", path=path, namespace="", recurse=recurse)
    file = TreeEntry(path=f"{path}/a.yaml".lstrip("/"), blob=BlobId("1" * 40), size=1)
    other = TreeEntry(path=entry, blob=BlobId("2" * 40), type=kind)
    content = read_source(source, [file, other], lambda blobs: dict.fromkeys(blobs, DEPLOYMENT.encode()), "")
    if said:
        assert isinstance(content, UnreadSource)
        assert content.message.startswith(said)
    else:
        assert isinstance(content, SourceContent)


def test_objects_without_a_namespace_get_that_of_the_source_where_they_need_one():
    data = b"\n---\n".join(
        b"{apiVersion: %s, kind: %s, metadata: {name: a%s}}" % parts
        for parts in ((b"v1", b"ConfigMap", b""), (b"v1", b"Service", b", namespace: own"), (b"v1", b"Namespace", b""))
    )
    source = RepositorySource(url="u", revision="", path="", namespace="demo", recurse=False)
    entries = [TreeEntry(path=path, blob=BlobId("1" * 40), size=1) for path in ("a.yaml", "deeper/a.yaml")]
    content = read_source(source, entries, lambda blobs: dict.fromkeys(blobs, data), "")
    assert isinstance(content, SourceContent)
    namespaces = {manifest["kind"]: manifest["metadata"].get("namespace") for manifest in content.manifests}
    assert namespaces == {"ConfigMap": "demo", "Service": "own", "Namespace": None}
    assert len(content.manifests) == 3


def test_lists_are_read_item_by_item():
    data = b'{"kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]}'
    content = plain_manifests("apps", {"apps/all.json": data}, "")
    assert isinstance(content, SourceContent)
    assert [manifest["kind"] for manifest in content.manifests] == ["ConfigMap"]


def test_a_source_of_too_many_files_is_refused():
    files = {f"apps/{number}.yaml": b"" for number in range(101)}
    assert isinstance(plain_manifests("apps", files, ""), UnreadSource)


def test_a_source_that_is_too_large_is_never_read():
    def read(blobs):
        raise AssertionError(f"{blobs} were meant to stay where they are")

    weights = [TreeEntry(path="models/weights.bin", blob=BlobId("1" * 40), size=50_000_000)]
    assert read_source(PathSource(path="models/weights.bin"), weights, read, "") == UnreadSource(
        message="models/weights.bin is 47.7 MB; files over 1 MiB are not read",
        remedy="split it, or name the manifests alone",
    )
    many = [TreeEntry(path=f"apps/{number}.yaml", blob=BlobId("1" * 40), size=1) for number in range(101)]
    assert isinstance(read_source(PathSource(path="apps"), many, read, ""), UnreadSource)
