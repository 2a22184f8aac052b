"""In which versions of an API group a server has a resource, where nobody else says."""

from __future__ import annotations

from reconciler.adapters.kube.answers import NotServed
from reconciler.adapters.kube.server import ApiServer
from reconciler.core.observe.kubernetes.resources import Custom, Watched


async def served_at(server: ApiServer, resource: Watched, within: float) -> tuple[str, ...]:
    """Return the paths that list a resource, those of the server's own choice first.

    A server tells its versions to every account (Kubernetes' role system:discovery). Raises NotServed where it has no
    such group.
    """
    group = await server.get(f"/apis/{resource.group}", {}, within=within)
    told = [group.get("preferredVersion") or {}, *(group.get("versions") or ())]
    versions = tuple(dict.fromkeys(str(one["version"]) for one in told if one.get("version")))
    if not versions:
        raise NotServed(f"/apis/{resource.group} names no version")
    return Custom(resource.group, versions, resource.plural, resource.kind).paths()
