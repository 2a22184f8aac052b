"""The objects that an admin applies once in a cluster, so that Flux there follows the output branch.

Accounts with the least rights, the source, the Kustomization that applies a cluster's ``flux/``, and a Receiver
(docs/background/upstream/flux.md, "Accounts and bounds" and "Receiver"). All of them are for one cluster: Flux runs in
each, and follows that cluster's directory alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from types import MappingProxyType

from reconciler.core.engines import permissions
from reconciler.core.engines.flux.names import APPLIER, ROOT, SOURCE, TOOLKIT, flux_duration
from reconciler.core.engines.service_export import export_kind
from reconciler.core.safety import commands
from reconciler.core.safety.scope import is_cluster_scoped
from reconciler.core.schema.egs.deploy import HOOK, READER
from reconciler.core.schema.yaml import emit
from reconciler.core.workloads.api_kinds import cluster_scoped, group_kind
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired, EngineName, Fleet, Flux
from reconciler.model.tree import branch_of
from reconciler.model.workload import Json
from reconciler.text.spelling import nearest

_INTRODUCTION = """\
# What Flux needs to follow the placements of one cluster. Written by `overspill bootstrap flux --cluster {cluster}`.
#
# Apply it once, as somebody who may grant rights, in the cluster itself, where Flux runs with its source, kustomize,
# helm and notification controllers (2.9 or newer):
#
#     overspill bootstrap flux --cluster {cluster} | kubectl apply -f -
#
# After that:
#   * give Flux a login that may read the repository and no more: a Secret placements-read in namespace {namespace} with
#     username and password, or identity and known_hosts for ssh;
#   * give the webhook at the end its token, and have the daemon call it;
#   * start the daemon: until it has begun the directory of this cluster on the branch, the source is not ready;
#   * make the service accounts that templates name; placements never bring rights along.
#
# Two settings of the controllers are worth having. --requeue-dependency=5s of the kustomize controller lets one stage
# follow another sooner than in half a minute. With --feature-gates=CancelHealthCheckOnNewRevision=true, of it and of
# the helm controller, the end of a burst goes first while the burst is still being waited for: without it a chart
# that never gets ready is taken away only when its timeout is over. And where Flux is not locked down for tenants
# yet, do so: with --no-cross-namespace-refs=true and --default-service-account=default on its controllers, or a chart
# that brings objects of Flux along can leave the bounds below.
#
# Apply it again when namespaces or the kinds of templates change. Never take the accounts away while placements stand:
# Flux would leave behind what it applied through them.
"""

_NAMESPACES = """\
# Where the templates' objects go. They are made here because rights are given in them; they stay. Kubernetes itself
# holds their pods, those of charts too, to the Pod Security level of the workspaces that use them. Pods that run are
# left alone.
"""

_USUAL = """\
# The kinds of Kubernetes itself that templates may hold.
"""

_ROOT = """\
# The account that applies clusters/{cluster}/flux: Kustomizations, here and nowhere else.
"""

_APPLIER = """\
# The account that applies what placements hold and installs their charts, whatever the output branch says. Here it may
# make releases and their sources, and read no Secrets. Flux's controllers do: a release may take its values from any
# Secret of this namespace, and a source its login. So keep none here but those of Flux and of chart repositories; the
# daemon has a namespace of its own. Elsewhere the account may write the kinds that templates may hold, in the
# namespaces of the workspaces that reach this cluster.
"""

_WIDE = """\
# A workspace that reaches this cluster names no namespaces, or its templates leave them open: the account may write in
# all of them. List spec.namespaces in each Workspace to have it bounded.
"""

_MORE = """\
# Kinds of others that templates and requests hold or workspaces allow. The plurals are guessed as Kubernetes guesses
# them. What a chart brings beyond that has to be added.
"""

_CLUSTER = "# Namespaces that charts and commands make: a right to create cannot be bounded by name.\n"

_JOBS = """\
# Command Jobs run beside the service accounts of EGS, in a namespace that has to be there.
"""

_SOURCE = """\
# The branch, and of it only what is for this cluster. Leave secretRef out for a repository that anybody may read.
"""

_VERIFICATION = """\
# Commits of the output branch are signed with OpenPGP. Flux checks them once the GitRepository below has in its spec:
#   verify: {mode: HEAD, secretRef: {name: <secret of public keys>}}
# Do so once the newest commit is signed: it deploys no other.
"""

_OWN = """\
# The branch of this cluster, which holds nothing else. Leave secretRef out for a repository that anybody may read.
"""

_FOLLOW = """\
# Applies the Kustomizations of every placement in this cluster, and takes them away when their files go. The patch
# keeps both them and the charts that they bring to the account above, so that who writes the branch cannot leave its
# bounds.
"""

_RECEIVER = """\
# Where a push is announced, so that Flux need not wait for its interval. It needs a token, and makes its path of it:
#     openssl rand -hex 32 > flux-secret
#     kubectl -n {namespace} create secret generic placements-hook --from-literal=token="$(cat flux-secret)"
#     kubectl -n {namespace} get receiver placements -o jsonpath='{{.status.webhookPath}}'
# The daemon calls it with OVERSPILL_NOTIFY_SECRET_FLUX_FILE=flux-secret and OVERSPILL_NOTIFY=flux=https://HOST/hook/...,
# where HOST leads to the Service webhook-receiver of Flux. A git host can do so too; the type is then its own (github).
"""

_ALL = ["get", "list", "watch", "create", "update", "patch", "delete"]
_USUAL_GROUPS = frozenset({"", "apps", "batch", "autoscaling", "networking.k8s.io", "policy"})
"""The groups whose kinds are in every cluster, and in many a chart."""

_RBAC = "rbac.authorization.k8s.io"


class FluxBootstrap:
    """The objects of one cluster (a `Bootstrap`)."""

    per_cluster = True
    verification = _VERIFICATION
    conditions: Mapping[str, tuple[str, str]] = MappingProxyType(
        dict.fromkeys(("GitRepository", "Kustomization", "Receiver"), ("Ready", "True"))
    )
    secrets: Mapping[str, tuple[str, ...]] = MappingProxyType({READER: ("username", "password"), HOOK: ("token",)})

    def install(self, fleet: Fleet, *, context: str) -> str:  # noqa: ARG002 - Flux has a namespace of its own
        """Write the command of Flux's own command line (https://fluxcd.io/flux/cmd/flux_install/)."""
        return f"flux --context {quote(context)} install" if context else "flux install"

    def text(self, desired: Desired, cluster: ClusterName | None, *, output_branch: str) -> str:
        """Write all objects, in the order in which to apply them."""
        if cluster is None:
            raise ValueError("Flux runs in each cluster, so its objects are those of one")
        return flux(desired, cluster, output_branch=output_branch)


def flux(desired: Desired, cluster: ClusterName, *, output_branch: str) -> str:
    """Write the objects for one cluster, with comments for the admin who applies them.

    Raises InvalidInput when the fleet does not say where its repository is, or the cluster is none of Flux's.
    """
    if not desired.fleet.repo_url:
        raise InvalidInput("writing Flux's objects: the Fleet has no spec.repoURL (set it to where Flux fetches)")
    described = desired.clusters.get(cluster)
    if described is None:
        hint = nearest(cluster, desired.clusters) or "there are none"
        raise InvalidInput(f"writing Flux's objects for {cluster!r}: no such Cluster is described ({hint})")
    if described.slurm is not None:
        raise InvalidInput(f"writing Flux's objects for {cluster!r}: it is {described.slurm.description}")
    if described.engine is not EngineName.FLUX:
        names = sorted(name for name, other in desired.clusters.items() if other.engine is EngineName.FLUX)
        hint = f"try {', '.join(names)}" if names else "set spec.engine: flux in the Cluster or the Fleet"
        raise InvalidInput(f"writing Flux's objects for {cluster!r}: its engine is {described.engine} ({hint})")
    settings = desired.fleet.flux
    values = {"cluster": cluster, "namespace": settings.namespace}
    documents = [
        _INTRODUCTION.format(**values) + "---\n" + emit(_object("v1", "Namespace", settings.namespace)),
        *_root(settings, _ROOT.format(**values)),
        *_applier(settings),
        *_rights(desired, cluster),
        _source(desired.fleet, output_branch, cluster),
        _FOLLOW + emit(_follow(settings, cluster)),
        _RECEIVER.format(**values) + emit(_receiver(settings)),
    ]
    return "---\n".join(documents)


def _root(settings: Flux, comment: str) -> list[str]:
    rules = [_rule(f"kustomize.{TOOLKIT}", ["kustomizations"]), _rule("", ["configmaps"])]
    return [comment + emit(_account(settings, ROOT)), *_grant(settings, ROOT, settings.namespace, rules)]


def _applier(settings: Flux) -> list[str]:
    rules = [
        _rule(f"helm.{TOOLKIT}", ["helmreleases"]),
        _rule(f"source.{TOOLKIT}", ["helmrepositories", "ocirepositories"]),
    ]
    return [_APPLIER + emit(_account(settings, APPLIER)), *_grant(settings, APPLIER, settings.namespace, rules)]


def _rights(desired: Desired, cluster: ClusterName) -> list[str]:
    """Write the rights of the applier's account: in the namespaces of the cluster's placements, and beyond."""
    settings = desired.fleet.flux
    reach = [
        namespace for name, namespace in permissions.target_namespaces(desired, EngineName.FLUX) if name == cluster
    ]
    jobs = commands.JOB_NAMESPACE in reach
    namespaces = [name for name in reach if name not in (commands.JOB_NAMESPACE, settings.namespace)]
    wide = "*" in namespaces
    kinds = _kinds(desired, cluster)
    scopes = {kind: is_cluster_scoped(kind, desired.kinds, desired.schemas) for kind in kinds}
    more = _rules(kind for kind in kinds if not scopes[kind])
    usual = [kind for kind in permissions.deployable(desired) if kind.partition("/")[0] in _USUAL_GROUPS]
    roles = ["overspill-usual", *(["overspill-more"] if more else [])]
    written = _rules(kind for kind in usual if not cluster_scoped(kind))
    documents = [_USUAL + emit(_role("ClusterRole", "overspill-usual", "", written))]
    if more:
        documents.append(_MORE + emit(_role("ClusterRole", "overspill-more", "", more)))
    if wide:
        documents += [
            (_WIDE if role == roles[0] else "") + emit(_binding(settings, APPLIER, f"{APPLIER}-{role}", "", role))
            for role in roles
        ]
    elif namespaces:
        documents.append(_NAMESPACES + "---\n".join(emit(_namespace(desired, name)) for name in namespaces))
        documents += [
            emit(_binding(settings, APPLIER, f"{APPLIER}-{role}", name, role)) for name in namespaces for role in roles
        ]
    bounded = {} if wide else {"resourceNames": namespaces}
    spaces = [{**_rule("", ["namespaces"]), "verbs": ["get", "list", "watch", "create"]}]
    spaces += [{**_rule("", ["namespaces"]), **bounded, "verbs": ["update", "patch"]}] if namespaces else []
    beyond = _rules(kind for kind in kinds if scopes[kind] and kind != "/Namespace")
    documents.append(_CLUSTER + emit(_role("ClusterRole", "overspill-cluster", "", [*spaces, *beyond])))
    documents.append(emit(_binding(settings, APPLIER, "overspill-cluster", "", "overspill-cluster")))
    if jobs:
        first, second = _grant(settings, APPLIER, commands.JOB_NAMESPACE, [_rule("batch", ["jobs"])])
        documents += [_JOBS + first, second]
    return documents


def _kinds(desired: Desired, cluster: ClusterName) -> list[str]:
    """List the kinds beyond the usual that workspaces deploy, export or allow in a cluster, as ``group/Kind``."""
    kinds: set[str] = set()
    for workspace in desired.workspaces.values():
        if cluster in workspace.destinations:
            kinds.update(workspace.allowed_kinds)
            kinds.update(map(export_kind, filter(None, [workspace.shared_networking])))
            deployed = (
                group_kind(resource.manifest)
                for spec in permissions.deployed(desired, workspace.name)
                for resource in spec.manifests
            )
            kinds.update(kind for kind in deployed if kind.partition("/")[0] not in _USUAL_GROUPS)
    return sorted(kinds & permissions.deployable(desired))


def _rules(kinds: Iterable[str]) -> list[Json]:
    """Allow kinds, a rule for each group."""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        group, _, name = kind.partition("/")
        groups.setdefault(group, []).append(_plural(name.lower()))
    return [_rule(group, sorted(resources)) for group, resources in sorted(groups.items())]


def _plural(kind: str) -> str:
    """Guess a kind's plural in the way of Kubernetes' own UnsafeGuessKindToResource."""
    if kind.endswith("s"):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def _rule(group: str, resources: Sequence[str]) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(_ALL)}


def _object(version: str, kind: str, name: str, namespace: str = "") -> dict[str, Json]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _namespace(desired: Desired, name: str) -> Json:
    """Write a namespace whose pods Kubernetes holds to a Pod Security level."""
    document = _object("v1", "Namespace", name)
    document["metadata"]["labels"] = {permissions.ENFORCED: str(permissions.pod_security(desired, name))}
    return document


def _account(settings: Flux, name: str) -> Json:
    return _object("v1", "ServiceAccount", name, settings.namespace)


def _role(kind: str, name: str, namespace: str, rules: Sequence[Json]) -> Json:
    return {**_object(f"{_RBAC}/v1", kind, name, namespace), "rules": list(rules)}


def _grant(settings: Flux, account: str, namespace: str, rules: Sequence[Json]) -> tuple[str, str]:
    """Write a Role of the account's name in a namespace, and its binding."""
    binding = _binding(settings, account, account, namespace, account, kind="Role")
    return emit(_role("Role", account, namespace, rules)), emit(binding)


def _binding(settings: Flux, account: str, name: str, namespace: str, role: str, *, kind: str = "ClusterRole") -> Json:
    """Bind an account to a role: in a namespace, or, where that is empty, everywhere."""
    return {
        **_object(f"{_RBAC}/v1", "RoleBinding" if namespace else "ClusterRoleBinding", name, namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": settings.namespace}],
    }


def _source(fleet: Fleet, output_branch: str, cluster: ClusterName) -> str:
    own = fleet.branch_per_cluster
    document = {
        **_object(f"source.{TOOLKIT}/v1", "GitRepository", SOURCE, fleet.flux.namespace),
        "spec": {
            "interval": flux_duration(fleet.flux.interval),
            "url": fleet.repo_url,
            "ref": {"branch": branch_of(output_branch, cluster) if own else output_branch},
            "secretRef": {"name": READER},
            **({} if own else {"sparseCheckout": [f"clusters/{cluster}"]}),
        },
    }
    return (_OWN if own else _SOURCE) + emit(document)


def _follow(settings: Flux, cluster: ClusterName) -> Json:
    inner = {"op": "add", "path": "/spec/patches", "value": [_pin(f"helm.{TOOLKIT}", "HelmRelease")]}
    return {
        **_object(f"kustomize.{TOOLKIT}/v1", "Kustomization", ROOT, settings.namespace),
        "spec": {
            "interval": "10m",
            "retryInterval": "30s",
            "path": f"./clusters/{cluster}/flux",
            "prune": True,
            "wait": False,
            "targetNamespace": settings.namespace,
            "patches": [_pin(f"kustomize.{TOOLKIT}", "Kustomization", inner)],
            "serviceAccountName": ROOT,
            "sourceRef": {"kind": "GitRepository", "name": SOURCE},
        },
    }


def _pin(group: str, kind: str, *more: Json) -> Json:
    """Write a patch that makes all objects of a kind use the applier's account, and whatever else."""
    account = {"op": "add", "path": "/spec/serviceAccountName", "value": APPLIER}
    return {"target": {"group": group, "kind": kind}, "patch": emit([account, *more])}


def _receiver(settings: Flux) -> Json:
    return {
        **_object(f"notification.{TOOLKIT}/v1", "Receiver", "placements", settings.namespace),
        "spec": {
            "type": "generic-hmac",
            "secretRef": {"name": HOOK},
            "resources": [{"apiVersion": f"source.{TOOLKIT}/v1", "kind": "GitRepository", "name": SOURCE}],
        },
    }
