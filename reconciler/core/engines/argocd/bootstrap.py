"""The objects that an admin applies once, so that Argo CD follows the output branch.

An AppProject bounds what any placement may do, and an ApplicationSet turns each ``placement.yaml`` into an Application
(docs/background/upstream/argocd.md, "ApplicationSet" and "AppProject"). Both are written for one fleet: its clusters,
namespaces and chart repositories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from types import MappingProxyType

from reconciler.core.engines import permissions
from reconciler.core.engines.deployment import chart_steps
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.safety import commands
from reconciler.core.safety.scope import is_cluster_scoped
from reconciler.core.schema.yaml import emit
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.policy import ArgoCD, Desired, EngineName, Fleet
from reconciler.model.tree import branch_of
from reconciler.model.workload import Json

_INTRODUCTION = """\
# What Argo CD needs to follow the placements of fleet {fleet}. Written by `overspill bootstrap argocd`.
#
# Apply it once, where Argo CD (3.4 or newer) and its ApplicationSet controller run:
#
#     overspill bootstrap argocd | kubectl apply -n {namespace} -f -
#
# Before that:
#   * each cluster below is registered in Argo CD under its name in the fleet repository; a workspace's primary is among
#     them for what people ask for by name, unless the Workspace says requestsOnPrimary: false;
#   * Argo CD can read the repository, with a read-only key, and each chart repository, with credentials where it asks
#     for some;
#   * the service accounts that templates name exist in their clusters; placements never bring rights along.
#
# Apply it again when clusters, namespaces or chart repositories change. Those are the repositories of files: where
# calls of the API bring charts from others, add them to sourceRepos. Taking something away from the project orphans
# what it has deployed there: let the placements go first.
"""

_INSTALLATION = "https://raw.githubusercontent.com/argoproj/argo-cd/stable/manifests/install.yaml"

_PROJECT = """\
# The bounds of every placement, whatever the output branch says: sources, destinations and kinds.
"""

_VERIFICATION = """\
# Commits of the output branch are signed with OpenPGP. Argo CD (3.5 or newer) checks them once you have added the
# public key to it (argocd gpg add), and to the spec of the AppProject:
#   sourceIntegrity: {git: {policies: [{repos: [{url: "<repository>"}], gpg: {mode: strict, keys: ["<key id>"]}}]}}
# Do so once all commits that it follows are signed: it deploys no others.
"""

_LEVELS = """\
# It says nothing of what pods may do. Overspill looks into the manifests, and Argo CD renders charts later on: have
# Kubernetes hold the pods of both to the levels of the workspaces, in each cluster.
"""

_SET = """\
# One Application for each placement.yaml. Project, cluster and name come from here and from the path, never from the
# file, so that who writes the branch cannot leave the bounds above. An Application goes with its placement.yaml, and
# what it deployed goes with it, unless the placement's deletionPolicy is Retain.
# For changes within seconds, have both Argo CD's API server and its ApplicationSet controller told of each push: by the
# daemon (overspill run --notify argocd=URL --notify argocd=URL), or by your git host if it reaches both. Without that
# they poll. Their addresses within the cluster, and with `kubectl port-forward` or an ingress beyond it:
#     https://argocd-server.{namespace}.svc/api/webhook
#     http://argocd-applicationset-controller.{namespace}.svc:7000/api/webhook
# Set webhook.github.secret in the Secret argocd-secret to the daemon's OVERSPILL_NOTIFY_SECRET and restart the
# controller: while it is not set, both listen to anybody.
"""

_BRANCHES = """\
# Each cluster is followed on a branch of its own. Start the daemon before you apply this, and again before you apply it
# anew for more clusters: as long as one of the branches is not there, the ApplicationSet does nothing.
"""

_PATCH = """\
{{- $create := false }}
{{- range $step := .spec.steps }}{{ if eq $step.type "helm" }}{{ range $.spec.helmConfig }}
{{- if and (eq .name $step.name) .helmFlags.createNamespace }}{{ $create = true }}{{ end }}
{{- end }}{{ end }}{{ end }}
spec:
  sources:
    - repoURL: @REPO@
      targetRevision: @REVISION@
      path: {{ printf "%s/manifests" .path.path | toJson }}
    {{- if eq (index .metadata.annotations "overspill.dev/charts") "engine" }}
    {{- range $step := .spec.steps }}{{ if eq $step.type "helm" }}
    {{- range $.spec.helmConfig }}{{ if eq .name $step.name }}
    - repoURL: {{ trimPrefix "oci://" .repoURL | toJson }}
      chart: {{ trimPrefix (printf "%s/" .repoName) .chart | toJson }}
      targetRevision: {{ .version | default "*" | toJson }}
      helm:
        releaseName: {{ .releaseName | toJson }}
        namespace: {{ .releaseNamespace | toJson }}
        skipCrds: {{ .helmFlags.skipCRDs | toJson }}
        valuesObject: {{ .values | toJson }}
    {{- end }}{{ end }}{{ end }}{{ end }}
    {{- end }}
  {{- if eq (index .metadata.annotations "overspill.dev/autoscaled") "true" }}
  ignoreDifferences:
    - {group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}
    - {group: apps, kind: StatefulSet, jsonPointers: [/spec/replicas]}
    - {group: argoproj.io, kind: Rollout, jsonPointers: [/spec/replicas]}
    - {group: grove.io, kind: PodCliqueSet, jsonPointers: [/spec/replicas]}
  {{- else if index .metadata.annotations "overspill.dev/scaled" }}
  ignoreDifferences:
    {{- range (index .metadata.annotations "overspill.dev/scaled" | fromJson) }}
    - group: {{ .group | toJson }}
      kind: {{ .kind | toJson }}
      namespace: {{ .namespace | toJson }}
      name: {{ .name | toJson }}
      jsonPointers: {{ .jsonPointers | toJson }}
    {{- end }}
  {{- end }}
  syncPolicy:
    syncOptions:
      - CreateNamespace={{ $create }}
      - ServerSideApply=true
      - RespectIgnoreDifferences=true
      {{- if eq .spec.deletionPolicy "Retain" }}
      - Prune=false
      - Delete=false
      {{- else if index .metadata.annotations "overspill.dev/shared" }}
      {{- else if and (eq (index .metadata.annotations "overspill.dev/charts") "engine") (not .spec.cmdExec) }}
      - FailOnSharedResource=true
      {{- end }}
"""
"""The part of the template that depends on the spec of a placement.

To retain a chart takes Argo CD 3.4: before, Prune=false and Delete=false are no options of a whole Application, and all
objects go that are not marked themselves, as manifests are. A namespace that a manifest, a command or a rendered
chart asked for outlives its placement and still bears the old Application's name: FailOnSharedResource would take that
for a conflict, as it would with Retain. The annotations ``scaled``, of what autoscalers name, and ``shared`` are absent
from older records, in which ``autoscaled`` is ``"true"`` for any autoscaler.
"""


class ArgoCDBootstrap:
    """The objects of Argo CD's own cluster, for all clusters that it deploys to (a `Bootstrap`)."""

    per_cluster = False
    verification = _VERIFICATION
    conditions: Mapping[str, tuple[str, str]] = MappingProxyType({"ApplicationSet": ("ErrorOccurred", "False")})
    secrets: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def install(self, fleet: Fleet, *, context: str) -> str:
        """Write the commands of Argo CD's own guide (https://argo-cd.readthedocs.io/en/stable/getting_started/)."""
        kubectl = f"kubectl --context {quote(context)}" if context else "kubectl"
        namespace = fleet.argocd.namespace
        return (
            f"{kubectl} create namespace {namespace} && {kubectl} apply -n {namespace} --server-side --force-conflicts"
            f" -f {_INSTALLATION}"
        )

    def text(self, desired: Desired, cluster: ClusterName | None, *, output_branch: str) -> str:  # noqa: ARG002 - one text is for all clusters
        """Write the AppProject and the ApplicationSet."""
        return argocd(desired.fleet, desired, output_branch=output_branch)


def argocd(fleet: Fleet, desired: Desired, *, output_branch: str) -> str:
    """Write the AppProject and the ApplicationSet of a fleet, with comments for the admin who applies them.

    Raises InvalidInput when the fleet does not say where its repository is or has no cluster for Argo CD.
    """
    if not fleet.repo_url:
        raise InvalidInput("writing Argo CD's objects: the Fleet has no spec.repoURL (set it to where Argo CD fetches)")
    names = sorted(name for name, cluster in desired.clusters.items() if cluster.engine is EngineName.ARGOCD)
    if not names:
        raise InvalidInput(
            "writing Argo CD's objects: no Cluster has the engine argocd (add one, or use another engine)"
        )
    introduction = _INTRODUCTION.format(fleet=fleet.name, namespace=fleet.argocd.namespace)
    project = _pod_security(desired) + emit(_project(fleet, desired))
    # Other engines' clusters have a placement.yaml too; only where there are none of them will one pattern do.
    followed = ["*"] if len(names) == len(desired.clusters) else names
    own = fleet.branch_per_cluster
    revision = f"refs/heads/{branch_of(output_branch, _CLUSTER) if own else output_branch}"
    generators = [_generator(fleet.repo_url, f"refs/heads/{output_branch}", followed)]
    if own:
        generators = [
            _generator(fleet.repo_url, f"refs/heads/{branch_of(output_branch, name)}", [name]) for name in names
        ]
    applications = emit(_application_set(fleet.argocd, fleet.repo_url, revision, generators))
    comment = _SET.format(namespace=fleet.argocd.namespace) + (_BRANCHES if own else "")
    return f"{introduction}---\n{_PROJECT}{project}---\n{comment}{applications}"


def _project(fleet: Fleet, desired: Desired) -> Json:
    reach = permissions.target_namespaces(desired, EngineName.ARGOCD)
    namespaces = sorted({namespace for _, namespace in reach} - {commands.JOB_NAMESPACE})
    kinds = sorted(permissions.deployable(desired))
    scopes = {kind: is_cluster_scoped(kind, desired.kinds, desired.schemas) for kind in kinds}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": fleet.argocd.project, "namespace": fleet.argocd.namespace},
        "spec": {
            "description": f"Placements of fleet {fleet.name}, written by Overspill",
            "sourceRepos": [fleet.repo_url, *_chart_repositories(desired)],
            "destinations": [{"name": cluster, "namespace": namespace} for cluster, namespace in reach],
            "clusterResourceWhitelist": [
                *({"group": "", "kind": "Namespace", "name": namespace} for namespace in namespaces),
                *(_kind(kind) for kind in kinds if scopes[kind] and kind != "/Namespace"),
            ],
            "namespaceResourceWhitelist": [_kind(kind) for kind in kinds if not scopes[kind]],
        },
    }


def _pod_security(desired: Desired) -> str:
    """Write the commands by which Kubernetes holds the pods of each namespace to its level, as comments."""
    spaces: dict[str, list[str]] = {}
    for namespace in sorted({namespace for _, namespace in permissions.target_namespaces(desired, EngineName.ARGOCD)}):
        if namespace not in ("*", commands.JOB_NAMESPACE):
            spaces.setdefault(permissions.pod_security(desired, namespace), []).append(namespace)
    lines = [
        f"#     kubectl label namespace {' '.join(names)} {permissions.ENFORCED}={level}\n"
        for level, names in sorted(spaces.items())
    ]
    return _LEVELS + "".join(lines) if lines else ""


def _kind(kind: str) -> Json:
    """Write a ``group/Kind`` as an AppProject does."""
    group, _, name = kind.partition("/")
    return {"group": group, "kind": name}


def _chart_repositories(desired: Desired) -> list[str]:
    """List where charts come from, in the form that Argo CD uses: OCI registries without their scheme."""
    return sorted(
        {
            chart.repo_url.removeprefix("oci://")
            for spec in permissions.deployed(desired)
            for chart in chart_steps(spec)
            if chart.repo_url and not has_expression(chart.repo_url)
        }
    )


def _generator(repo_url: str, revision: str, clusters: Sequence[str]) -> Json:
    """Write where the placements of clusters are found."""
    return {
        "git": {
            "repoURL": repo_url,
            "revision": revision,
            "requeueAfterSeconds": 60,
            "files": [{"path": f"clusters/{cluster}/*/placement.yaml"} for cluster in clusters],
        }
    }


def _application_set(argo: ArgoCD, repo_url: str, revision: str, generators: Sequence[Json]) -> Json:
    patch = _PATCH.replace("@REPO@", _quote(repo_url)).replace("@REVISION@", _revision(revision))
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": argo.project, "namespace": argo.namespace},
        "spec": {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": list(generators),
            "syncPolicy": {"preserveResourcesOnDeletion": False},
            "template": _application(argo, repo_url, revision),
            "templatePatch": patch,
        },
    }


_CLUSTER = "{{ index .path.segments 1 }}"
_PLACEMENT = "{{ index .path.segments 2 }}"


def _application(argo: ArgoCD, repo_url: str, revision: str) -> Json:
    """Write the fields that all Applications share. A dot joins the parts of the name, since neither may hold one."""
    return {
        "metadata": {
            "name": f"{_CLUSTER}.{_PLACEMENT}",
            "labels": {"overspill.dev/cluster": _CLUSTER, PLACEMENT_LABEL: _PLACEMENT},
            "annotations": {
                "argocd.argoproj.io/manifest-generate-paths": "/{{ .path.path }}",
                "overspill.dev/digest": '{{ index .metadata.annotations "overspill.dev/digest" }}',
            },
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "project": argo.project,
            "destination": {
                "name": _CLUSTER,
                "namespace": '{{ index .metadata.annotations "overspill.dev/namespace" }}',
            },
            "sources": [
                {"repoURL": repo_url, "targetRevision": revision, "path": "{{ .path.path }}/manifests"},
            ],
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True, "allowEmpty": True},
                "retry": {
                    "limit": 3,
                    "refresh": True,
                    "backoff": {"duration": "2s", "factor": 2, "maxDuration": "30s"},
                },
            },
        },
    }


def _revision(text: str) -> str:
    """Quote a branch for YAML inside a Go template, with the action in it that names the cluster, if there is one."""
    head, action, tail = text.partition(_CLUSTER)
    return f"{_quote(head)[:-1]}{action}{_quote(tail)[1:]}"


def _quote(text: str) -> str:
    """Quote a text for YAML inside a Go template, which must not take it for an action."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("{{", '{{ "{{" }}')
    return f'"{escaped}"'
