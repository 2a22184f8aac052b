"""The files of a new fleet beside its Clusters: the Fleet and the Workspace say where each line comes from."""

from __future__ import annotations

from reconciler.core.onboarding.context_reading import EngineSighting
from reconciler.core.onboarding.discovered_cluster import DiscoveredCluster
from reconciler.core.onboarding.engine_choice import choose_engines, control_clusters
from reconciler.core.onboarding.repository_files import NewFleet, cluster_notes, fleet_notes, repository_files
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import EngineName

HOME, HUB = (
    DiscoveredCluster(name=ClusterName("home"), context="home", version="v1.37.0", nodes=2),
    DiscoveredCluster(
        name=ClusterName("hub"),
        context="admin@hub",
        version="v1.37.0",
        nodes=3,
        gpu_nodes=2,
        gpus=(("NVIDIA-L40S", 8),),
        engines={EngineName.ARGOCD: EngineSighting(namespaces=("gitops",))},
    ),
)
README = (
    "| path | what it is |\n|---|---|\n| `fleet.yaml` | settings |\n| `templates/*.yaml` | what a burst deploys |\n"
)
POLICY = """\
# yaml-language-server: $schema=../schemas/BurstPolicy.json
# Governs both templates.
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata:
  name: usual
spec:
  templates:
  - vllm
  clusters:
  - name: worker-2
    maxReplicas: 8
  hold: 1h # for so long
"""
LAYOUT = {
    "README.md": README.encode(),
    "fleet.yaml": b"the example",
    "policies/usual.yaml": POLICY.encode(),
    "templates/vllm.yaml": b"the example",
    "bootstrap/daemon.yaml": b"value: https://git.example.com/acme/fleet.git\n",
}


def new_fleet(*clusters: DiscoveredCluster, repo_url: str = "https://git.example.com/ml/fleet.git") -> NewFleet:
    return NewFleet(
        clusters=clusters,
        primary=HOME.name,
        engines=choose_engines(clusters, HOME.name, next(iter(control_clusters(clusters)), None), None),
        workspace=WorkspaceName("llm"),
        namespaces={"vllm-demo": "3 pods there ask for GPUs, in home"} if repo_url else {},
        repo_url=repo_url,
        repo_url_from="named by --repo-url",
    )


def written(fleet: NewFleet, policy: tuple[str, bytes] | None = None) -> dict[str, str]:
    return {path: data.decode() for path, data in repository_files(fleet, LAYOUT, policy).items()}


def test_the_fleet_says_where_engines_clone_and_where_argo_cd_runs() -> None:
    assert written(new_fleet(HOME, HUB))["fleet.yaml"] == (
        """\
# yaml-language-server: $schema=schemas/Fleet.json
# Settings for all clusters. Every field has a default.
apiVersion: overspill.dev/v1alpha1
kind: Fleet
metadata:
  name: fleet # any name will do
spec:
  repoURL: "https://git.example.com/ml/fleet.git" # where engines clone the output branch from: named by --repo-url
  engine: argocd # of clusters that name none: Argo CD runs in hub, in namespace gitops
  argocd: # how the daemon reads what Argo CD reports of placements
    namespace: gitops # where its Deployments are in hub
    connection:
      context: "admin@hub" # in the daemon's kubeconfig: the cluster hub, where Argo CD runs
"""
    )


def test_the_workspace_says_what_each_cluster_has() -> None:
    assert written(new_fleet(HOME, HUB))["workspaces/llm.yaml"] == (
        """\
# yaml-language-server: $schema=../schemas/Workspace.json
# A tenant: where its workloads live, where they may burst to, and what they may touch there.
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata:
  name: llm # its workloads are called llm/NAME
spec:
  primaryCluster: home # where its workloads live; they burst when it is full
  clusters: # all that it may use, the primary among them
  - home # Kubernetes v1.37.0; 2 nodes, none with GPUs
  - hub # Kubernetes v1.37.0; 3 nodes, 2 with GPUs: 8 NVIDIA-L40S
  namespaces: # all that it may use; engines get rights in these alone
  - vllm-demo # 3 pods there ask for GPUs, in home
  requestsOnPrimary: false # no engine was seen in the primary, so what is requested by name may not be placed there
"""
    )


def test_the_usual_policy_is_for_all_templates_and_clusters() -> None:
    assert written(new_fleet(HOME))["policies/usual.yaml"] == (
        """\
# yaml-language-server: $schema=../schemas/BurstPolicy.json
# Governs all templates: they may burst to all clusters of their workspace but the primary.
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata:
  name: usual
spec:
  hold: 1h # for so long
"""
    )


def test_no_example_is_left_and_none_is_named() -> None:
    files = written(new_fleet(HOME))
    assert set(files) == {
        "README.md", "fleet.yaml", "clusters/home.yaml", "workspaces/llm.yaml", "policies/usual.yaml",
        "bootstrap/daemon.yaml",
    }  # fmt: skip # a list of paths, filled line by line
    assert "templates/" not in files["README.md"]
    assert files["bootstrap/daemon.yaml"] == "value: https://git.example.com/ml/fleet.git\n"


def test_a_policy_for_a_region_gets_that_of_the_primary_where_it_is_known() -> None:
    text = b"spec:\n  requireLabels:\n    region: eu-west\n"
    assert written(new_fleet(HOME), ("one-region", text))["policies/one-region.yaml"] == text.decode()


def test_what_a_person_has_to_know_is_told() -> None:
    closed = DiscoveredCluster(name=ClusterName("shut"), context="shut", unlisted="forbids it: nodes is forbidden")
    assert [*cluster_notes([HOME, closed])] == ["the nodes of shut are not known: forbids it: nodes is forbidden"]
    assert [*fleet_notes(new_fleet(HOME, closed, repo_url=""))] == [
        "nothing says where engines clone the repository from: set spec.repoURL in fleet.yaml (or try --repo-url)",
    ]
    assert [*fleet_notes(new_fleet(HOME))] == [
        "home is the only cluster: its workloads can burst once there is another one"
    ]
