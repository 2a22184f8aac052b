"""The files of a placement, as Argo CD, kubectl and kustomize find them."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.engines import engine, target_namespace
from reconciler.core.engines.argocd.engine import KEEP, SYNC_OPTIONS
from reconciler.errors import InvalidInput
from reconciler.model.policy import EngineName
from reconciler.model.tree import checked_path
from reconciler.model.workload import DeletionPolicy, HelmFlags
from tests.builders.deploy_specs import CONFIG, JOBS, PLACEMENT, WEB, WORKSPACE, chart, files, objects, spec
from tests.builders.workload_kinds import workload

ARGOCD, MANIFESTS = EngineName.ARGOCD, EngineName.MANIFESTS
WAVE = "argocd.argoproj.io/sync-wave"
OPTIONS = "argocd.argoproj.io/sync-options"
DELETION = "overspill.dev/deletion-policy"
LABEL = "overspill.dev/placement"

JOBFUL = replace(WORKSPACE, command_jobs=JOBS)
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}


def named(name, manifest=CONFIG, **metadata):
    return {**manifest, "metadata": {"name": name, **metadata}}


def waves(*parts, **more):
    made = objects(spec(*parts, service_account="vllm-sa"), workspace=JOBFUL, **more)
    return {name: it["metadata"].get("annotations", {}).get(WAVE) for name, it in made.items()}


def test_each_object_is_a_file_and_the_alphabet_is_the_order_of_the_steps():
    made = files(spec(("web", WEB), ("settings", CONFIG), ("service", SERVICE)))
    assert sorted(made) == [
        "manifests/00-overspill-marker.yaml",
        "manifests/01-web-deployment-web.yaml",
        "manifests/02-settings-configmap-settings.yaml",
        "manifests/03-service-service-web.yaml",
    ]
    assert made["manifests/02-settings-configmap-settings.yaml"].decode() == (
        "apiVersion: v1\n"
        "kind: ConfigMap\n"
        "metadata:\n"
        "  name: settings\n"
        "  namespace: vllm-demo\n"
        "  labels:\n"
        "    overspill.dev/placement: vllm-7f3a\n"
        "  annotations:\n"
        '    argocd.argoproj.io/sync-wave: "10"\n'
        "data:\n"
        '  a: "1"\n'
    )


def test_a_chart_is_left_to_argo_cd_and_the_steps_round_it_are_waves():
    deployed = spec(("a", named("a")), ("b", named("b")), chart(), ("c", named("c")), ("get", "kubectl get pods"))
    assert waves(("a", named("a")), ("b", named("b")), chart(), ("c", named("c")), ("get", "kubectl get pods")) == {
        "00-overspill-marker.yaml": None,
        "01-a-configmap-a.yaml": "-20",
        "02-b-configmap-b.yaml": "-10",
        "04-c-configmap-c.yaml": "10",
        "05-get-job-vllm-7f3a-05-get-" + job_hash(deployed) + ".yaml": "20",
    }
    assert engine(ARGOCD).charts_mode(deployed) == "engine"
    assert engine(ARGOCD).to_render(deployed) == ()


def job_hash(deployed):
    made = objects(replace(deployed, service_account="vllm-sa"), workspace=JOBFUL)
    return next(it["metadata"]["name"][-8:] for it in made.values() if it["kind"] == "Job")


def test_without_a_chart_the_waves_count_from_zero():
    found = waves(("a", named("a")), ("b", named("b")), ("c", named("c")))
    assert list(found.values()) == [None, "0", "10", "20"]


def test_two_charts_are_rendered_and_every_object_has_the_wave_of_its_step():
    deployed = spec(chart("one"), ("between", CONFIG), chart("two"))
    hook = named("migrate", annotations={"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "5"})
    own = named("late", annotations={WAVE: "99"})
    made = objects(deployed, charts={"one": (named("a"), hook), "two": (own,)})
    assert {name: it["metadata"].get("annotations") for name, it in made.items()} == {
        "00-overspill-marker.yaml": None,
        "01-one-001-configmap-a.yaml": {WAVE: "0"},
        "01-one-002-configmap-migrate.yaml": {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "5"},
        "02-between-configmap-settings.yaml": {WAVE: "10"},
        "03-two-001-configmap-late.yaml": {WAVE: "20"},
    }
    assert engine(ARGOCD).charts_mode(deployed) == "rendered"
    assert [config.name for config in engine(ARGOCD).to_render(deployed)] == ["one", "two"]


def test_a_wave_that_the_user_wrote_stands():
    assert waves(("a", named("a", annotations={WAVE: "7"})))["01-a-configmap-a.yaml"] == "7"


def test_namespaces_and_marked_objects_survive_the_revert_under_argo_cd():
    made = objects(
        spec(("a", CONFIG), ("ns", "kubectl create ns tools"), ("mark", "kubectl label cm other tier=front"))
    )
    namespace, mark = made["00-namespace-tools.yaml"], made["03-mark-configmap-other.yaml"]
    assert namespace["metadata"] == {
        "name": "tools",
        "annotations": {WAVE: "-1000", OPTIONS: "Prune=false,Delete=false"},
    }
    assert mark["metadata"]["annotations"] == {WAVE: "20", OPTIONS: "Prune=false,Delete=false"}
    assert mark["metadata"]["labels"] == {"tier": "front"}  # not ours: others own it
    assert OPTIONS not in made["01-a-configmap-settings.yaml"]["metadata"]["annotations"]


def test_every_object_and_every_workloads_pods_bear_the_placements_label():
    made = objects(spec(("web", WEB), ("service", SERVICE), ("settings", CONFIG)))
    assert all(it["metadata"]["labels"][LABEL] == "vllm-7f3a" for it in made.values())
    web = made["01-web-deployment-web.yaml"]
    assert web["metadata"]["labels"] == {"app": "web", LABEL: "vllm-7f3a"}
    assert web["spec"]["template"]["metadata"]["labels"] == {"app": "web", LABEL: "vllm-7f3a"}
    assert web["spec"]["selector"] == {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job"])
def test_pods_are_labelled_even_where_their_template_has_no_metadata(kind):
    version = "batch/v1" if kind == "Job" else "apps/v1"
    manifest = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"x": 1}}},
    }
    (made,) = (it for it in objects(spec(("a", manifest))).values() if it["kind"] == kind)
    assert made["spec"]["template"] == {"metadata": {"labels": {LABEL: "vllm-7f3a"}}, "spec": {"x": 1}}


def test_a_users_own_value_of_the_label_is_not_replaced():
    manifest = copy.deepcopy(WEB)
    manifest["metadata"]["labels"][LABEL] = "mine"
    manifest["spec"]["template"]["metadata"]["labels"][LABEL] = "mine"
    made = objects(spec(("web", manifest)))["01-web-deployment-web.yaml"]
    assert made["metadata"]["labels"][LABEL] == "mine"
    assert made["spec"]["template"]["metadata"]["labels"][LABEL] == "mine"


def test_the_pods_of_a_command_are_no_replicas():
    made = objects(spec(("run", "kubectl delete pod a"), service_account="vllm-sa"), workspace=JOBFUL)
    (job,) = (it for it in made.values() if it["kind"] == "Job")
    assert job["metadata"]["labels"][LABEL] == "vllm-7f3a"
    assert "metadata" not in job["spec"]["template"]


def test_an_object_without_a_namespace_gets_the_placements_unless_its_kind_has_none():
    workspace = replace(
        WORKSPACE, allowed_kinds=("/PersistentVolume", "example.com/Pool", "rbac.authorization.k8s.io/Role")
    )
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "a"}}
    custom = {"apiVersion": "example.com/v1", "kind": "Pool", "metadata": {"name": "a"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}}
    deployed = spec(("a", CONFIG), ("b", named("b", namespace="tools")), ("c", volume), ("d", custom), ("e", role))
    made = objects(deployed, workspace=workspace)
    found = {name[:2]: it["metadata"].get("namespace") for name, it in made.items()}
    assert found == {"00": "tools", "01": "tools", "02": "tools", "03": None, "04": None, "05": "tools"}


def test_an_object_of_a_rendered_chart_goes_to_its_releases_namespace():
    deployed = spec(chart("one", release_namespace="vllm-demo"), chart("two", release_namespace="tools"))
    made = objects(deployed, charts={"one": (named("a"),), "two": (named("a"), named("b", namespace="vllm-demo"))})
    found = [(name[:2], it["metadata"]["namespace"]) for name, it in made.items()]
    assert found == [("00", "vllm-demo"), ("01", "vllm-demo"), ("02", "tools"), ("02", "vllm-demo")]


@pytest.mark.parametrize(
    ("parts", "namespace"),
    [
        ([("a", named("a", namespace="tools")), chart(release_namespace="vllm-demo")], "vllm-demo"),
        ([("a", CONFIG), ("b", named("b", namespace="tools"))], "tools"),
        ([("a", "kubectl get pods"), ("b", "kubectl get pods -n tools")], "tools"),
        ([("a", "kubectl create ns tools")], "tools"),
        ([("a", "kubectl create cm a --from-literal=a=b -n tools")], "tools"),
        ([("a", CONFIG)], "vllm-demo"),
        ([("a", "kubectl create ns test-ns --dry-run=client")], "vllm-demo"),
        ([], "vllm-demo"),
    ],
)
def test_the_target_namespace_is_the_first_that_is_named(parts, namespace):
    assert target_namespace(spec(*parts), WORKSPACE) == namespace


@pytest.mark.parametrize("namespaces", [(), ("tools", "default")])
def test_where_none_is_named_it_is_the_default_one_if_the_workspace_may_use_that(namespaces):
    assert target_namespace(spec(("a", CONFIG)), replace(WORKSPACE, namespaces=namespaces)) == "default"


@pytest.mark.parametrize("name", [ARGOCD, MANIFESTS])
def test_the_same_object_twice_is_refused_with_both_steps(name):
    with pytest.raises(InvalidInput, match="step 'a' and step 'b' both make ConfigMap vllm-demo/settings: an object"):
        files(spec(("a", CONFIG), ("b", CONFIG)), name)
    wrapper = workload("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{"template": CONFIG}]})
    wrapper["metadata"]["namespace"] = "vllm-demo"
    with pytest.raises(InvalidInput, match="step 'a' and step 'b' both make ConfigMap vllm-demo/settings: an object"):
        files(spec(("a", CONFIG), ("b", wrapper)))
    with pytest.raises(InvalidInput, match="Overspill itself and step 'a' both make ConfigMap vllm-demo/over"):
        files(spec(("a", named("overspill-vllm-7f3a"))), name)
    assert len(objects(spec(("web", WEB), ("a", CONFIG), ("b", named("settings", namespace="tools"))), name)) == 4


@pytest.mark.parametrize("name", [ARGOCD, MANIFESTS])
def test_a_rendered_chart_that_breaks_a_safety_rule_is_refused(name):
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    deployed = spec(chart("one"), chart("two"))
    with pytest.raises(InvalidInput, match=r"spec\.helmConfig\.one: the chart makes Role r: Role grants rights"):
        files(deployed, name, charts={"one": ({"kind": "List", "items": [CONFIG, role]},), "two": ()})


def test_an_export_of_a_service_is_placed_like_any_object():
    export = {
        "apiVersion": "networking.kubeslice.io/v1beta1",
        "kind": "ServiceExport",
        "metadata": {"name": "vllm"},
        "spec": {"slice": "llm", "selector": {"matchLabels": {"app": "vllm"}}},
    }
    made = objects(spec(("web", WEB), ("export", export)))["02-export-serviceexport-vllm.yaml"]
    assert made["spec"] == export["spec"]
    assert made["metadata"]["namespace"] == "vllm-demo"


def test_a_list_in_a_rendered_chart_is_taken_apart():
    made = objects(
        spec(chart()), MANIFESTS, charts={"vllm-app": ({"kind": "List", "items": [named("a"), named("b")]},)}
    )
    assert [name for name in made if "vllm-app" in name] == [
        "01-vllm-app-001-configmap-a.yaml",
        "01-vllm-app-002-configmap-b.yaml",
    ]


def test_the_marker_tells_which_version_of_a_placement_a_cluster_has():
    made = objects(spec(("a", CONFIG)))["00-overspill-marker.yaml"]
    assert made == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "overspill-vllm-7f3a", "namespace": "vllm-demo", "labels": {LABEL: "vllm-7f3a"}},
        "data": {"placement": "llm/vllm-7f3a", "digest": PLACEMENT.digest},
    }


def test_the_kustomization_lists_every_file_in_order():
    made = files(spec(("b", named("b")), ("a", named("a")), ("ns", "kubectl create ns tools")), MANIFESTS)
    kustomization = yaml.safe_load(made["kustomization.yaml"])
    assert kustomization["resources"] == [
        "manifests/00-namespace-tools.yaml",
        "manifests/00-overspill-marker.yaml",
        "manifests/01-b-configmap-b.yaml",
        "manifests/02-a-configmap-a.yaml",
    ]
    assert sorted(made) == ["kustomization.yaml", *kustomization["resources"]]


def test_retain_is_written_on_each_object_for_the_manifests_engine_and_delete_on_none():
    deployed = spec(("a", CONFIG), ("ns", "kubectl create ns tools"))
    kept = {
        name: (it["metadata"].get("annotations") or {}).get(DELETION)
        for name, it in objects(replace(deployed, deletion_policy=DeletionPolicy.RETAIN), MANIFESTS).items()
    }
    assert list(kept.values()) == ["Retain", None, "Retain"]
    kept = {
        name: (it["metadata"].get("annotations") or {}).get(DELETION)
        for name, it in objects(deployed, MANIFESTS).items()
    }
    assert list(kept.values()) == ["Retain", None, None]  # a namespace outlives its placement in any case


def test_argo_cd_is_told_on_each_object_to_retain_it_and_may_take_the_marker_away():
    deployed = replace(spec(("a", CONFIG), ("b", named("b"))), deletion_policy=DeletionPolicy.RETAIN)
    kept = [(it["metadata"].get("annotations") or {}).get(SYNC_OPTIONS) for it in objects(deployed, ARGOCD).values()]
    assert kept == [None, KEEP, KEEP]


def test_the_namespace_that_a_rendered_chart_asks_for_is_made_once():
    one = chart("one", flags=HelmFlags(create_namespace=True))
    two = chart("two", flags=HelmFlags(create_namespace=True), release_namespace="tools")
    charts = {"one": (named("a"),), "two": (named("b"),)}
    assert [name for name in objects(spec(one, two), MANIFESTS, charts=charts) if "namespace" in name] == [
        "00-namespace-tools.yaml",
        "00-namespace-vllm-demo.yaml",
    ]
    # Argo CD makes the Application's own namespace itself.
    assert [name for name in objects(spec(one, two), charts=charts) if "namespace" in name] == [
        "00-namespace-tools.yaml"
    ]
    stepped = spec(("ns", "kubectl create ns vllm-demo"), one)
    assert len([name for name in objects(stepped, MANIFESTS, charts=charts) if "namespace" in name]) == 1


@pytest.mark.parametrize(
    ("parts", "name", "helm", "reason"),
    [
        (
            [chart(repo_url="")], ARGOCD, True,
            "chart 'vllm-app' has no repoURL, so Argo CD cannot find it (set repoURL)",
        ),
        (
            [chart(repo_name="")], ARGOCD, True,
            ("chart 'vllm-app' is called 'vllm/vllm-stack', and no repository has a chart of that name "
            "(set repoName: vllm, or leave 'vllm/' out)"),
        ),
        (
            [chart("one"), chart("two")], ARGOCD, False,
            ("2 helm steps cannot keep their order in one Argo CD Application, so Overspill has to render 'one', 'two' "
            "and helm is not installed here (install helm 3)"),
        ),
        (
            [chart()], MANIFESTS, False,
            ("the manifests engine installs no charts, so Overspill has to render 'vllm-app' and helm is not installed "
            "here (install helm 3)"),
        ),
        (
            [chart(secret_ref="repo-login")], MANIFESTS, True,
            ("chart 'vllm-app' needs the credentials of Secret 'repo-login', and the manifests engine installs no "
            "charts: Overspill would have to render it and reads no Secrets (mirror the chart to a repository it can "
            "read)"),
        ),
        (
            [chart(repo_url="")], MANIFESTS, True,
            "chart 'vllm-app' has no repoURL, so helm cannot find it (set repoURL)",
        ),
        (
            [("mark", "kubectl label cm a b=c")], MANIFESTS, True,
            ("command 'mark' marks an object that others own, and the manifests engine cannot keep it from being "
            "pruned when the placement goes (use the argocd engine, or label the object where it is made)"),
        ),
        (
            [("drop", "kubectl delete pod a")], ARGOCD, True,
            ("command 'drop': 'kubectl delete' would have to run in the cluster, and the workspace has no command Jobs "
            "(write it as a manifest, or set commandJobs in the Workspace)"),
        ),
    ],
)  # fmt: skip # a table, a row a line
def test_what_an_engine_cannot_take_it_refuses_with_a_way_out(parts, name, helm, reason):
    assert engine(name).refusals(spec(*parts), WORKSPACE, helm=helm) == (reason,)


@pytest.mark.parametrize(
    ("parts", "name", "helm"),
    [
        ([chart()], ARGOCD, False),
        ([chart(repo_name="", chart="org/stack", repo_url="oci://registry.example.com")], ARGOCD, False),
        ([chart("one"), chart("two", release_namespace="tools")], ARGOCD, True),
        ([chart()], MANIFESTS, True),
        ([("mark", "kubectl label cm a b=c"), ("get", "kubectl get pods")], ARGOCD, False),
        ([("ns", "kubectl create ns tools"), ("a", CONFIG)], MANIFESTS, False),
    ],
)
def test_what_an_engine_can_take_it_takes(parts, name, helm):
    assert engine(name).refusals(spec(*parts), WORKSPACE, helm=helm) == ()


def test_a_refused_command_never_becomes_a_file():
    with pytest.raises(InvalidInput, match="drop: 'kubectl delete' would have to run in the cluster"):
        files(spec(("drop", "kubectl delete pod a")))


def test_a_config_that_no_step_names_is_not_deployed():
    deployed = spec(("a", CONFIG), ("b", named("b")))
    made = files(replace(deployed, steps=deployed.steps[:1]))
    assert sorted(made) == ["manifests/00-overspill-marker.yaml", "manifests/01-a-configmap-settings.yaml"]


def test_names_that_no_file_can_have_still_make_one_file_each():
    odd = ["a:b", "a/b", "A.B", "x" * 200, "x" * 199 + "y", "..", "é"]
    made = files(
        spec(*[("step", named(name)) for name in odd[:1]], *[(f"s {i}", named(n)) for i, n in enumerate(odd[1:])])
    )
    assert len(made) == len(odd) + 1
    for path in made:
        assert checked_path(path) == path
        assert len(path.encode()) < 255


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), unique=True, min_size=1))
def test_the_same_deployment_is_always_the_same_bytes(names):
    deployed = spec(*[(name, named(name)) for name in names])
    for name in EngineName:
        assert files(deployed, name) == files(copy.deepcopy(deployed), name)


def test_writing_changes_nothing_of_the_users():
    before = json.dumps([WEB, CONFIG])
    files(spec(("web", WEB), ("a", CONFIG)))
    assert json.dumps([WEB, CONFIG]) == before


def test_more_than_99_steps_keep_their_order():
    deployed = spec(*[(f"s{number}", named(f"c{number}")) for number in range(120)])
    names = [name for name in objects(deployed) if "marker" not in name]
    assert names == [f"{number + 1:03d}-s{number}-configmap-c{number}.yaml" for number in range(120)]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_reads_the_directory_and_the_kustomization_in_order(tmp_path):
    deployed = spec(("web", copy.deepcopy(WEB) | {"spec": {"replicas": 2}}), ("b", named("b")), ("a", named("a")))
    for path, data in files(deployed, MANIFESTS).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    done = subprocess.run(
        ["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    built = list(yaml.safe_load_all(done.stdout))
    assert [it["metadata"]["name"] for it in built] == ["overspill-vllm-7f3a", "web", "b", "a"]
    assert built[1]["spec"]["replicas"] == 2


@pytest.mark.parametrize("name", [ARGOCD, MANIFESTS])
def test_what_only_looks_like_a_list_is_refused_with_its_chart(name):
    odd = [{**CONFIG, "items": [CONFIG]}, {"kind": "List", "items": ["a"]}, {"apiVersion": "v1", "kind": "List"}]
    for made in odd:
        with pytest.raises(InvalidInput):
            files(spec(chart("one"), chart("two")), name, charts={"one": ({"apiVersion": "v1", **made},), "two": ()})


def test_a_name_for_a_file_is_never_too_long_to_be_checked_out():
    kind, step = "K" + "Ab" * 31, "S" + "a" * 62
    one, two = ({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": end + "A" * 200}} for end in "ab")
    made = [path.rpartition("/")[2] for path in files(spec((step, one), (step + "b", two))) if step[1:] in path]
    assert len({*made}) == 2
    assert all(len(path) <= 220 for path in made)
