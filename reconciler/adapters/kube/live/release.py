"""A Helm release, read once from the Secret in which Helm keeps its deployed revision; no other Secret is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.adapters.helm.output import sourced_objects
from reconciler.adapters.kube.answers import Forbidden, NotServed
from reconciler.adapters.kube.bounded_session import PATIENCE, ask, list_objects, run
from reconciler.adapters.kube.server import ApiServer
from reconciler.core.onboarding.helm_release import ChartObject, HelmRelease, read_release, release_document
from reconciler.errors import InvalidInput, Transient
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Connection
from reconciler.model.workload import Json
from reconciler.text.digits import whole_number
from reconciler.text.spelling import nearest

_DEPLOYED = "deployed"


def read_live_release(
    kubeconfig: Path,
    cluster: ClusterName,
    connection: Connection,
    wanted: tuple[str, str],
    *,
    patience: float = PATIENCE,
) -> HelmRelease:
    """Read a release of a cluster; `wanted` is its namespace and name.

    The names and labels of Helm's Secrets in the namespace tell which one holds it. Raises InvalidInput where there is
    none, or the login may not read it, and Transient where the cluster does not answer.
    """
    namespace, name = wanted

    async def read(server: ApiServer) -> tuple[str, Json]:
        path = f"/api/v1/namespaces/{namespace}/secrets"
        query = {"labelSelector": "owner=helm"}
        try:
            listed = list_objects(server, path, query, patience, metadata_only=True)
            labels = {str(item["metadata"]["name"]): item["metadata"]["labels"] async for item in listed}
            secret = _deployed(labels, cluster, namespace, name)
            return secret, await server.get(f"{path}/{secret}", {}, within=patience)
        except (Forbidden, NotServed) as error:
            raise InvalidInput(_way_out(f"{cluster} {error}", namespace, name)) from error

    try:
        secret, answer = run(ask(kubeconfig, connection, read, patience))
    except Transient as error:
        raise Transient(f"cluster {cluster} {error}") from error
    document = release_document(answer)
    what = f"Secret {namespace}/{secret} of {cluster}"
    made = sourced_objects(str(document.get("manifest") or ""), what)
    objects = [ChartObject(manifest=manifest, source=source) for source, manifest in made]
    return read_release(document, objects, what)


def _deployed(labels: Mapping[str, Json], cluster: ClusterName, namespace: str, name: str) -> str:
    """Return the Secret of the revision that is deployed. Raises InvalidInput where there is none."""
    own = {secret: each for secret, each in labels.items() if each.get("name") == name}
    if not own:
        hint = nearest(name, {str(each.get("name")) for each in labels.values()})
        none = "there is none: try another --namespace; charts that Argo CD renders are no releases, lend their objects"
        raise InvalidInput(f"{cluster} has no Helm release {namespace}/{name} ({hint or none})")
    newest = sorted(own, key=lambda secret: whole_number(str(own[secret].get("version"))) or 0)
    deployed = [secret for secret in newest if own[secret].get("status") == _DEPLOYED]
    if not deployed:
        status = own[newest[-1]].get("status")
        raise InvalidInput(
            f"no revision of release {namespace}/{name} on {cluster} is deployed: the last one is {status}"
            f" (`helm history {name} --namespace {namespace}` tells more)"
        )
    return deployed[-1]


def _way_out(problem: str, namespace: str, name: str) -> str:
    """Say how to lend a release whose Secret this login may not read."""
    at = f"{name} --namespace {namespace}"
    return (
        f"reading Helm's Secret of release {namespace}/{name}: {problem} (have somebody with this right run"
        f" `helm get manifest {at} > manifest.yaml` and `helm get values {at} --output yaml > values.yaml`, then add"
        " --filename manifest.yaml --values values.yaml)"
    )
