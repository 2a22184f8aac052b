"""The objects that `overspill grant` applies: the daemon's account, and what it may read at one API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.core.engines import ENGINES
from reconciler.core.readiness.check import AskedServer
from reconciler.core.readiness.needed_rights import DAEMON, VERBS, NeededRights, granted_rights
from reconciler.model.policy import Desired
from reconciler.model.workload import Json

TOKEN_SECRET = "overspill-token"  # noqa: S105 - its name
_RBAC = "rbac.authorization.k8s.io"
_READER = "overspill-reader"
_COMPANIONS = "overspill-companions"


def account_objects(desired: Desired, servers: Iterable[AskedServer]) -> tuple[Json, ...]:
    """Write the account and its rights, in the order in which an API server takes them.

    `servers` are a cluster, a control plane, or both where the plane runs in the cluster. The names are those of the
    files of bootstrap/, so that these objects and those of the files are the same; rights that the fleet does not need
    are left out.
    """
    servers = tuple(servers)
    needed = [each for server in servers for each in granted_rights(desired, server)]
    everywhere = [each for each in needed if not each.namespace]
    bounded = {(each.file, each.namespace): each for each in needed if each.namespace and not each.names}
    named: dict[str, list[NeededRights]] = {}
    for each in needed:
        if each.names and each not in named.setdefault(each.namespace, []):
            named[each.namespace].append(each)
    objects: list[Json] = [_namespace(DAEMON.namespace), _account()]
    if everywhere:
        objects += [_role("ClusterRole", _READER, everywhere), _binding("ClusterRole", _READER)]
    objects += [_namespace(name) for name in _made_namespaces(desired, servers)]
    for (file, namespace), each in sorted(bounded.items()):
        name = _role_name(file)
        objects += [_role("Role", name, [each], namespace), _binding("Role", name, namespace)]
    for namespace, rights in sorted(named.items()):
        objects += [_role("Role", _COMPANIONS, rights, namespace), _binding("Role", _COMPANIONS, namespace)]
    return tuple(objects)


def event_rights() -> tuple[Json, ...]:
    """Write the right to create Kubernetes Events, which a Notification with `kubernetesEvents` needs, and no other."""
    name = "overspill-events"
    rules = [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    return role, _binding("ClusterRole", name)


def token_secret() -> Json:
    """Write the Secret that Kubernetes fills with a token without an end.

    https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#create-token: since 1.24 no such
    Secret is made for an account, and one that is made for it by name is kept as long as the account.
    """
    annotations = {"kubernetes.io/service-account.name": DAEMON.name}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": TOKEN_SECRET, "namespace": DAEMON.namespace, "annotations": annotations},
        "type": "kubernetes.io/service-account-token",
    }


def _made_namespaces(desired: Desired, servers: Iterable[AskedServer]) -> Iterator[str]:
    """Yield the namespaces that engines follow the output branch from, where these run in each cluster."""
    for server in servers:
        if server.cluster is not None:
            engine = ENGINES[desired.clusters[server.cluster].engine]
            reports = engine.cluster_reports(desired.fleet, server.cluster)
            if reports is not None:
                yield reports.namespace


def _role_name(file: str) -> str:
    """Return the name of the Role in a file: ``overspill-flux-reader`` for ``bootstrap/rbac-flux.yaml``."""
    topic = file.removeprefix("bootstrap/rbac-").removesuffix(".yaml")
    return f"overspill-{topic}" if topic.endswith("logins") else f"overspill-{topic}-reader"


def _namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _account() -> Json:
    metadata = {"name": DAEMON.name, "namespace": DAEMON.namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _role(kind: str, name: str, needed: Iterable[NeededRights], namespace: str = "") -> Json:
    groups: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for each in needed:
        for resource in each.resources:
            groups.setdefault((resource.group, each.names), set()).add(resource.plural)
    # A list or a watch by name is one whose field selector is that name
    # (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources).
    rules: list[Json] = [
        {
            "apiGroups": [group],
            "resources": sorted(plurals),
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(VERBS),
        }
        for (group, names), plurals in sorted(groups.items())
    ]
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": _metadata(name, namespace), "rules": rules}


def _binding(kind: str, name: str, namespace: str = "") -> Json:
    subject = {"kind": "ServiceAccount", "name": DAEMON.name, "namespace": DAEMON.namespace}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [subject],
    }


def _metadata(name: str, namespace: str) -> Json:
    return {"name": name, **({"namespace": namespace} if namespace else {})}
