"""What keeps a spec from every cluster that it may go to, told when its file is read.

Deciding asks each cluster again (`provided.lacking`), and tells of each what it lacks. Where that is all of them, no
waiting for room helps, and nobody would look before the first shortage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.core.fieldpath import at
from reconciler.core.findings import Finding, Loc, shortened
from reconciler.core.provided import called, lacked
from reconciler.core.wording import listed, plain
from reconciler.errors import Severity
from reconciler.model.policy import Cluster
from reconciler.model.prerequisites import Category, Prerequisite
from reconciler.model.workload import DeploySpec


def warn_unprovided(
    spec: DeploySpec, prerequisites: Sequence[Prerequisite], clusters: Sequence[Cluster]
) -> Iterator[Finding]:
    """Warn of a spec that goes nowhere, since each of the clusters that it may go to says that it lacks something.

    DeviceClasses are passed over: a cluster that does not name one may still be seen to have it.
    """
    said = [one for one in prerequisites if one.category is not Category.DEVICE_CLASSES]
    lacks = {cluster.name: lacked(cluster, said) for cluster in clusters}
    if not lacks or not all(lacks.values()):
        return
    everywhere = [one for one in said if all(one in found for found in lacks.values())]
    if everywhere:
        first, *others = wanted = everywhere
        which = f"none of {listed(lacks)} has" if len(lacks) > 1 else f"{listed(lacks)} has no"
        nor = f", nor {listed(map(called, others))}" if others else ""
        message = f"{which} {called(first)}, which {plain(first.by)} needs{nor}"
    else:
        wanted = [found[0] for found in lacks.values()]
        message = listed(f"{name} has no {called(found[0])}" for name, found in lacks.items())
    fields = listed(dict.fromkeys(f"spec.provides.{one.category}" for one in wanted))
    them = "them" if len(wanted) > 1 else "it"
    yield Finding(
        loc=_place(spec, wanted[0]),
        message=f"{message}, and it may go nowhere else",
        hint=f"create {them} there and list {them} in the Cluster's {fields}, or ship {them} with the workload",
        severity=Severity.WARNING,
    )


def _place(spec: DeploySpec, one: Prerequisite) -> Loc:
    """Return the place of the object that needs something; what a command makes has none of its own."""
    for index, resource in enumerate(spec.manifests):
        manifest = resource.manifest
        if one.by == shortened(f"{manifest.get('kind')} {at(manifest, ('metadata', 'name'))}"):
            return ("spec", "manifestResources", index)
    return ("spec",)
