"""A fleet of three clusters that lacks nothing for a first burst, or whatever a test takes away."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from reconciler.core.engines import ENGINES
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.observe.kubernetes.resources import plural_of
from reconciler.core.schema import yaml
from reconciler.errors import Severity
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.policy import EngineName
from tests.builders.engine_objects import cluster_secret
from tests.builders.passes import SOURCE_FILES
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

ADDRESS = "https://git.example.com/ml/fleet.git"
FILES = {
    **SOURCE_FILES,
    "fleet.yaml": f"""\
apiVersion: overspill.dev/v1alpha1
kind: Fleet
metadata: {{name: demo}}
spec: {{engine: argocd, repoURL: "{ADDRESS}", argocd: {{connection: {{context: worker-3}}}}}}
""",
    "clusters.yaml": "---\n".join(
        f"apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: worker-{number}}}\nspec: {spec}\n"
        for number, spec in ((1, "{}"), (2, "{engine: flux}"), (3, "{}"))
    ),
    "workspaces.yaml": SOURCE_FILES["workspaces.yaml"].replace("{primary", "{requestsOnPrimary: false, primary"),
    "template.yaml": SOURCE_FILES["template.yaml"].replace(
        "vllm:1.0}", "vllm:1.0, envFrom: [{secretRef: {name: hub}}]}"
    ),
}
"""worker-1 is the primary, Flux runs in worker-2, and Argo CD in worker-3; pods need a Secret to read a model."""

ARGO_CD = {"argoproj.io/v1alpha1": ["applications", "applicationsets", "appprojects"]}
FLUX = {
    "kustomize.toolkit.fluxcd.io/v1": ["kustomizations"],
    "helm.toolkit.fluxcd.io/v2": ["helmreleases"],
    "source.toolkit.fluxcd.io/v1": ["gitrepositories"],
    "notification.toolkit.fluxcd.io/v1": ["receivers"],
}
_WELL = {"ApplicationSet": ("ErrorOccurred", "False")} | dict.fromkeys(
    ("GitRepository", "Kustomization", "Receiver"), ("Ready", "True")
)


class ReadyFleet:
    """Three API servers with all that a first burst needs, and a kubeconfig of them."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.clusters = [Cluster(), Cluster(), Cluster()]
        self.primary, self.flux, self.argo_cd = self.clusters
        for cluster in self.clusters:
            stack.enter_context(serving(cluster))
            cluster.account = "system:serviceaccount:overspill-system:overspill"
            cluster.groups["apps"] = ["v1"]
            for space in ("demo", "argocd"):
                cluster.put("namespaces", made("v1", "Namespace", space))
            cluster.put("secrets", made("v1", "Secret", "hub", "demo"))
        for cluster, kinds in ((self.flux, FLUX), (self.argo_cd, ARGO_CD)):
            cluster.kinds |= {version: list(plurals) for version, plurals in kinds.items()}
            for version in kinds:
                group, _, number = version.partition("/")
                cluster.groups[group] = [number]
        self.argo_cd.put("secrets", cluster_secret("worker-3", self.argo_cd.url, {}, called="worker-3"))
        for name in ("placements-read", "placements-hook"):
            self.flux.put("secrets", made("v1", "Secret", name, "overspill"))
        self.flux.put("deployments", controller("source-controller", "flux-system", "flux", version="v2.9.1"))
        own = controller("argocd-applicationset-controller", "argocd", "argocd", image="quay.io/argoproj/argocd:v3.4.2")
        self.argo_cd.put("deployments", own)
        self.kubeconfig = path / "kubeconfig"
        kubeconfig(self.kubeconfig, *((f"worker-{n}", each.url) for n, each in enumerate(self.clusters, start=1)))

        for cluster, text in zip((self.flux, self.argo_cd), bootstraps(), strict=True):
            self.apply(cluster, text)

    def apply(self, cluster: Cluster, text: str) -> None:
        """Apply what `overspill bootstrap` prints, and let the engine's controllers find all well."""
        for document in yaml.parse(text.encode(), "bootstrap"):
            raw: dict[str, Any] = document.value
            if raw["kind"] in _WELL:
                kind, status = _WELL[raw["kind"]]
                raw["status"] = {"conditions": [{"type": kind, "status": status, "message": "as it should be"}]}
            cluster.put(plural_of(raw["kind"]), raw)


@cache
def bootstraps() -> tuple[str, str]:
    """Print the objects of Flux in worker-2, and those of Argo CD."""
    desired = assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in FILES.items()})
    assert not [problem for problem in desired.problems if problem.severity is Severity.ERROR]
    flux, argo_cd = (ENGINES[name].bootstrap for name in (EngineName.FLUX, EngineName.ARGOCD))
    assert flux is not None
    assert argo_cd is not None
    return (
        flux.text(desired, ClusterName("worker-2"), output_branch="placements"),
        argo_cd.text(desired, None, output_branch="placements"),
    )


def controller(name: str, namespace: str, project: str, *, version: str = "", image: str = "") -> dict[str, Any]:
    """Make the Deployment of an engine's controller, whose version a label or its image tells."""
    raw = made("apps/v1", "Deployment", name, namespace)
    told = {"app.kubernetes.io/version": version} if version else {}
    raw["metadata"]["labels"] = {"app.kubernetes.io/part-of": project, **told}
    raw["spec"] = {"template": {"spec": {"containers": [{"image": image}]}}}
    return raw


def made(version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    """Make an object without a spec."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
