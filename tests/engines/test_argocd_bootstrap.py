"""What an admin applies once, so that Argo CD follows the output branch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from reconciler.core.engines.argocd.bootstrap import argocd
from reconciler.core.safety.allowed_kinds import allowed
from reconciler.core.workloads.api_kinds import cluster_scoped
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import ArgoCD, Cluster, Desired, EngineName, Fleet
from reconciler.model.request import Request
from reconciler.model.workload import WorkloadTemplate
from tests.builders.deploy_specs import CONFIG, JOBS, PLACEMENT, WORKLOAD, WORKSPACE, chart, spec

FLEET = Fleet(name="demo", repo_url="https://git.example.com/org/fleet.git")


def desired(*specs, workspace=WORKSPACE, engines=None):
    templates = {}
    for number, deployed in enumerate(specs):
        name = f"t{number}"
        template = WorkloadTemplate(name=name, workspace=workspace.name, namespace="k", spec=deployed, ref=None)
        templates[template.workload] = template
    clusters = {
        ClusterName(name): Cluster(name=ClusterName(name), engine=(engines or {}).get(name, EngineName.ARGOCD))
        for name in ("worker-1", "worker-2", "worker-9")
    }
    return Desired(
        commit=PLACEMENT.source_commit, clusters=clusters, workspaces={workspace.name: workspace}, templates=templates
    )


def written(given, fleet=FLEET):
    project, applications = yaml.safe_load_all(argocd(fleet, given, output_branch="placements"))
    return project, applications


def test_the_project_bounds_placements_to_the_fleets_sources_clusters_and_namespaces():
    oci = chart("b", repo_url="oci://registry.example.com/charts")
    project, _ = written(desired(spec(chart()), spec(oci, ("a", CONFIG))))
    assert project["kind"] == "AppProject"
    assert project["metadata"] == {"name": "overspill", "namespace": "argocd"}
    assert project["spec"]["sourceRepos"] == [
        "https://git.example.com/org/fleet.git",
        "https://charts.example.com",
        "registry.example.com/charts",
    ]
    assert project["spec"]["destinations"] == [
        {"name": cluster, "namespace": namespace}
        for cluster in ("worker-1", "worker-2")
        for namespace in ("tools", "vllm-demo")
    ]
    assert project["spec"]["clusterResourceWhitelist"] == [
        {"group": "", "kind": "Namespace", "name": "tools"},
        {"group": "", "kind": "Namespace", "name": "vllm-demo"},
    ]
    assert kinds_of(project) == {kind for kind in allowed() if not cluster_scoped(kind)}
    assert not any(kind.startswith("rbac.authorization.k8s.io/") or "*" in kind for kind in kinds_of(project))


def kinds_of(project):
    return {f"{item['group']}/{item['kind']}" for item in project["spec"]["namespaceResourceWhitelist"]}


def test_the_pod_security_levels_are_told_as_commands_for_each_cluster():
    text = argocd(FLEET, desired(), output_branch="placements")
    assert "#     kubectl label namespace tools vllm-demo pod-security.kubernetes.io/enforce=baseline\n" in text


def test_only_a_workspace_with_command_jobs_reaches_the_namespace_of_their_accounts():
    reached = {item["namespace"] for item in written(desired())[0]["spec"]["destinations"]}
    assert reached == {"tools", "vllm-demo"}
    given = desired(workspace=replace(WORKSPACE, command_jobs=JOBS))
    project, _ = written(given)
    assert {"name": "worker-2", "namespace": "kubeslice-system"} in project["spec"]["destinations"]
    names = [item["name"] for item in project["spec"]["clusterResourceWhitelist"]]
    assert names == ["tools", "vllm-demo"]


def test_a_workspace_without_namespaces_reaches_those_of_its_templates():
    free = replace(WORKSPACE, namespaces=())
    project, _ = written(desired(spec(chart(release_namespace="one")), workspace=free))
    assert {item["namespace"] for item in project["spec"]["destinations"]} == {"one"}
    project, _ = written(desired(spec(chart(release_namespace="{{ placement.name }}")), workspace=free))
    assert {item["namespace"] for item in project["spec"]["destinations"]} == {"*"}


@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("kubectl create cm x -n tools --from-literal=a={{ replicas }}", {"tools"}),
        ("kubectl create ns extra", {"extra"}),
        ("kubectl annotate cm a b=c --namespace=tools", {"tools"}),
        ("kubectl create ns {{ cluster.labels.a | lower }}", {"*"}),
        ("kubectl create cm x -n {{ cluster.name }}-x --from-literal=a=b", {"*"}),
        ("kubectl create cm x {% if replicas %}-n tools{% endif %} --from-literal=a=b", {"*"}),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}}, {"extra"}),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{{ cluster.name }}"}}, {"*"}),
    ],
)
def test_a_workspace_without_namespaces_reaches_what_commands_and_namespace_objects_name(part, more):
    project, _ = written(desired(spec(chart(), ("it", part)), workspace=replace(WORKSPACE, namespaces=())))
    reached = {item["namespace"] for item in project["spec"]["destinations"]}
    assert reached == (more if more == {"*"} else {"vllm-demo", *more})
    assert {item["name"] for item in project["spec"]["clusterResourceWhitelist"]} == reached


def test_kinds_that_a_workspace_allows_are_allowed_in_the_project():
    workspace = replace(WORKSPACE, allowed_kinds=("/PersistentVolume", "rbac.authorization.k8s.io/Role"))
    project, _ = written(desired(workspace=workspace))
    assert {"group": "", "kind": "PersistentVolume"} in project["spec"]["clusterResourceWhitelist"]
    assert kinds_of(project) - allowed() == {"rbac.authorization.k8s.io/Role"}


def test_clusters_of_other_engines_are_left_out():
    project, applications = written(desired(engines={"worker-9": EngineName.MANIFESTS}))
    assert {item["name"] for item in project["spec"]["destinations"]} == {"worker-1", "worker-2"}
    (generator,) = applications["spec"]["generators"]
    assert generator["git"]["files"] == [
        {"path": f"clusters/{name}/*/placement.yaml"} for name in ("worker-1", "worker-2")
    ]


def test_a_primary_is_a_destination_only_while_its_workspace_has_requests_there():
    other = replace(WORKSPACE, name="other", primary=ClusterName("worker-2"), namespaces=("other",))
    given = desired(workspace=replace(WORKSPACE, requests_on_primary=False))
    reached, applications = written(given)
    assert {item["name"] for item in reached["spec"]["destinations"]} == {"worker-2"}
    (generator,) = applications["spec"]["generators"]
    assert generator["git"]["files"] == [{"path": "clusters/*/*/placement.yaml"}]
    project, _ = written(replace(given, workspaces={**given.workspaces, other.name: other}))
    reached = {(item["name"], item["namespace"]) for item in project["spec"]["destinations"]}
    assert {name for name, namespace in reached if namespace != "other"} == {"worker-2"}
    assert {name for name, namespace in reached if namespace == "other"} == {"worker-1", "worker-2"}


def test_what_files_ask_for_by_name_is_within_the_bounds_as_templates_are():
    asked = Request(
        name="bookinfo",
        workspace=WORKSPACE.name,
        namespace="k",
        spec=spec(chart("a", repo_url="https://requests.example.com", release_namespace="asked")),
        clusters=(ClusterName("worker-1"),),
    )
    given = replace(desired(workspace=replace(WORKSPACE, namespaces=())), requests={asked.workload: asked})
    project, _ = written(given)
    assert "https://requests.example.com" in project["spec"]["sourceRepos"]
    assert {"name": "worker-1", "namespace": "asked"} in project["spec"]["destinations"]
    assert {"group": "", "kind": "Namespace", "name": "asked"} in project["spec"]["clusterResourceWhitelist"]


def test_the_application_set_takes_project_cluster_and_name_from_the_path_only():
    _, applications = written(desired(), replace(FLEET, argocd=ArgoCD(namespace="gitops", project="bursts")))
    assert applications["metadata"] == {"name": "bursts", "namespace": "gitops"}
    assert applications["spec"]["goTemplateOptions"] == ["missingkey=error"]
    (generator,) = applications["spec"]["generators"]
    assert generator["git"]["revision"] == "refs/heads/placements"
    assert generator["git"]["files"] == [{"path": "clusters/*/*/placement.yaml"}]
    template = applications["spec"]["template"]
    assert template["metadata"]["name"] == "{{ index .path.segments 1 }}.{{ index .path.segments 2 }}"
    assert template["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io"]
    assert template["spec"]["project"] == "bursts"
    assert template["spec"]["destination"]["name"] == "{{ index .path.segments 1 }}"
    assert template["spec"]["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True, "allowEmpty": True}


def test_a_branch_for_each_cluster_is_a_generator_each_and_its_applications_stay_on_it():
    fleet = replace(FLEET, branch_per_cluster=True)
    _, applications = written(desired(engines={"worker-1": EngineName.FLUX}), fleet)
    generators = [generator["git"] for generator in applications["spec"]["generators"]]
    assert [(it["revision"], it["files"]) for it in generators] == [
        (f"refs/heads/placements-by-cluster/{name}", [{"path": f"clusters/{name}/*/placement.yaml"}])
        for name in ("worker-2", "worker-9")
    ]
    revision = "refs/heads/placements-by-cluster/{{ index .path.segments 1 }}"
    (source,) = applications["spec"]["template"]["spec"]["sources"]
    assert source["targetRevision"] == revision
    patch = applications["spec"]["templatePatch"]
    assert f'targetRevision: "{revision}"' in patch
    # As Argo CD would fill it in for a placement of worker-2: YAML, with the branch of that cluster.
    patch = patch.replace("{{ index .path.segments 1 }}", "worker-2")
    lines = [line for line in patch.splitlines() if 'targetRevision: "refs' in line]
    assert yaml.safe_load(lines[0]) == {"targetRevision": "refs/heads/placements-by-cluster/worker-2"}
    text = argocd(fleet, desired(), output_branch="placements")
    assert "as long as one of the branches is not there" in text
    assert "branches" not in argocd(FLEET, desired(), output_branch="placements")


def test_the_patch_adds_charts_as_sources_and_keeps_what_is_retained():
    patch = written(desired())[1]["spec"]["templatePatch"]
    assert 'repoURL: "https://git.example.com/org/fleet.git"' in patch
    assert '{{- if eq (index .metadata.annotations "overspill.dev/charts") "engine" }}' in patch
    for line in ("- Prune=false", "- Delete=false", "- FailOnSharedResource=true", "- ServerSideApply=true"):
        assert line in patch
    opened, closed = (patch.count("{{- if") + patch.count("{{ if") + patch.count("range"), patch.count("end }}"))
    assert opened == closed


def test_the_patch_ignores_the_replicas_of_what_autoscalers_name_alone():
    patch = written(desired())[1]["spec"]["templatePatch"]
    wide, named = patch.index('"overspill.dev/autoscaled") "true"'), patch.index('"overspill.dev/scaled" }}')
    assert wide < named, "a record of an older version has no list"
    ignored = patch[named : patch.index("syncPolicy")]
    for field in ("group", "kind", "namespace", "name", "jsonPointers"):
        assert f"{field}: {{{{ .{field} | toJson }}}}" in ignored


def test_the_patch_lets_placements_share_what_others_live_in():
    patch = written(desired())[1]["spec"]["templatePatch"]
    shared = patch.index('{{- else if index .metadata.annotations "overspill.dev/shared" }}')
    assert shared < patch.index("FailOnSharedResource=true")


def test_the_patch_takes_of_helms_flags_what_argo_cd_knows():
    patch = written(desired())[1]["spec"]["templatePatch"]
    assert "skipCrds: {{ .helmFlags.skipCRDs | toJson }}" in patch
    assert "- CreateNamespace={{ $create }}" in patch
    assert not [flag for flag in ("atomic", "cleanupOnFail", "timeout", "wait") if f"helmFlags.{flag}" in patch]


def test_braces_and_quotes_in_a_url_do_not_become_a_template_action():
    fleet = replace(FLEET, repo_url='https://git.example.com/{{ "x" }}.git')
    patch = written(desired(), fleet)[1]["spec"]["templatePatch"]
    assert 'https://git.example.com/{{ "{{" }} \\"x\\" }}.git' in patch


def test_the_admin_is_told_what_to_do_with_it():
    text = argocd(FLEET, desired(), output_branch="placements")
    assert text.startswith("# What Argo CD needs to follow the placements of fleet demo.")
    assert "Argo CD (3.4 or newer)" in text  # Retain, see _PATCH
    assert "overspill bootstrap argocd | kubectl apply -n argocd -f -" in text


@pytest.mark.parametrize(
    ("fleet", "given", "message"),
    [
        (Fleet(), desired(), r"the Fleet has no spec\.repoURL"),
        (FLEET, replace(desired(), clusters={}), "no Cluster has the engine argocd"),
    ],
)
def test_what_cannot_be_written_says_what_is_missing(fleet, given, message):
    with pytest.raises(InvalidInput, match=message):
        argocd(fleet, given, output_branch="placements")


def test_a_template_of_an_unknown_workspace_is_no_reason_to_fail():
    given = desired(spec(chart()))
    other = WorkloadTemplate(name=WORKLOAD.name, workspace=WorkspaceName("x"), namespace="k", spec=spec(), ref=None)
    assert written(replace(given, templates={**given.templates, other.workload: other}))
