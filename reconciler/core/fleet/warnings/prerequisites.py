"""Warnings about the prerequisites of a template when its file is read, before the first shortage.

- All clusters of a spec lack a prerequisite. Deciding checks each cluster again; if all lack it, waiting does not help.
- A cluster does not serve the API version of an object.
- The replicas of a workload share a volume that only one node, or one pod, can mount. Kubernetes would put them on one
  node, or leave all but one pending.
- The workspace's shared network does not reach a Service of the template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.core.engines import engine
from reconciler.core.engines.deployment import chart_steps
from reconciler.core.engines.service_export import Unexportable, export, service
from reconciler.core.fleet.cluster_order import ordered_candidates
from reconciler.core.pods.pod_references import as_mapping, mappings_in
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.cluster_provides import (
    UnservedVersion,
    declaring_fields,
    describe_prerequisite,
    known_lacking,
    undeclared,
    unserved_versions,
)
from reconciler.core.workloads.held_objects import held_objects, with_wrapped
from reconciler.core.workloads.paths import at, items, within
from reconciler.core.workloads.pods import pod_template_sites
from reconciler.errors import Severity
from reconciler.model.capacity import ClusterObservation
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.ids import ClusterName
from reconciler.model.policy import BurstPolicy, Cluster, Desired, EngineName, Workspace
from reconciler.model.workload import DeploySpec, Json
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.wording import join_names, sanitize

_CLAIM = "/PersistentVolumeClaim"
_OTHERWISE_CHECKED = frozenset({Category.DEVICE_CLASSES, Category.API_VERSIONS})
_ONE = {"ReadWriteOnce": "on one node", "ReadWriteOncePod": "in one pod"}


def warn_shared_claims(spec: DeploySpec, kinds: Kinds) -> Iterator[Finding]:
    """Warn of replicas that share a claim of their own template which not every node can mount."""
    bounds = dict(_single_mount_claims(resource.manifest for resource in spec.manifests))
    for index, resource in enumerate(spec.manifests) if bounds else ():
        manifest = resource.manifest
        for claim in dict.fromkeys(_mounted_claims(manifest, kinds) if _makes_several_pods(manifest, kinds) else ()):
            if claim in bounds:
                mode = bounds[claim]
                loc: Loc = ("spec", "manifestResources", index)
                what = f"{manifest.get('kind')} {at(manifest, ('metadata', 'name'))}"
                message = f"the replicas of {shortened(what)} share the {mode} claim {shortened(claim)}"
                hint = f"it is mounted {_ONE[mode]} only; use ReadWriteMany, ReadOnlyMany or volumeClaimTemplates"
                yield Finding(loc=loc, message=message, hint=hint, severity=Severity.WARNING)


def _single_mount_claims(manifests: Iterator[Mapping[str, Json]]) -> Iterator[tuple[str, str]]:
    """Yield the names of claims that only one node or pod can mount, with their access mode."""
    for manifest in manifests:
        modes = at(manifest, ("spec", "accessModes"))
        name = at(manifest, ("metadata", "name"))
        if group_kind(manifest) == _CLAIM and isinstance(modes, list) and isinstance(name, str):
            texts = [mode for mode in modes if isinstance(mode, str)]
            if texts and all(mode in _ONE for mode in texts):
                yield name, texts[0]


def _mounted_claims(manifest: Mapping[str, Json], kinds: Kinds) -> Iterator[str]:
    """Yield the claims that the pods of an object mount."""
    for place in pod_template_sites(manifest, kinds):
        pod = at(manifest, tuple(map(str, place.loc))) if place.loc else None
        for volume in mappings_in(as_mapping(pod).get("volumes")):
            claim = as_mapping(volume.get("persistentVolumeClaim"))
            name = claim.get("claimName")
            if isinstance(name, str) and claim.get("readOnly") is not True:
                yield name


def _makes_several_pods(manifest: Mapping[str, Json], kinds: Kinds) -> bool:
    """Return whether an object may make several pods of a template; an expression may be any number."""
    kind = kind_of(manifest, kinds)
    count_paths = (count.path for template in kind.templates for count in template.counts) if kind is not None else ()
    numbers = (
        at(manifest, within(count_path, item, count_path))
        for count_path in count_paths
        for item in items(manifest, count_path)
    )
    return any(number is not None and number not in (0, 1) for number in numbers)


def warn_unprovided(
    spec: DeploySpec,
    prerequisites: Sequence[Prerequisite],
    clusters: Sequence[Cluster],
    seen: Mapping[ClusterName, ClusterObservation],
) -> Iterator[Finding]:
    """Warn of a spec that no cluster can take, since each declares, or is seen, to lack a prerequisite.

    DeviceClasses are skipped: a cluster that does not declare one may still be observed to have it. API versions are
    told of each cluster (`warn_unserved`).
    """
    checked = [prerequisite for prerequisite in prerequisites if prerequisite.category not in _OTHERWISE_CHECKED]
    lacks = {cluster.name: known_lacking(cluster, checked, seen.get(cluster.name)) for cluster in clusters}
    if not lacks or not all(lacks.values()):
        return
    everywhere = [prerequisite for prerequisite in checked if all(prerequisite in lack for lack in lacks.values())]
    if everywhere:
        first, *others = wanted = everywhere
        which = f"none of {join_names(lacks)} has" if len(lacks) > 1 else f"{join_names(lacks)} has no"
        nor = f", nor {join_names(map(describe_prerequisite, others))}" if others else ""
        message = f"{which} {describe_prerequisite(first)}, which {sanitize(first.by)} needs{nor}"
    else:
        wanted = [lack[0] for lack in lacks.values()]
        message = join_names(
            f"{name} has no {describe_prerequisite(prerequisites[0])}" for name, prerequisites in lacks.items()
        )
    fields = declaring_fields(wanted, [seen.get(cluster.name) for cluster in clusters])
    them = "them" if len(wanted) > 1 else "it"
    listing = f" and list {them} in the Cluster's {fields}" if fields else ""
    yield Finding(
        loc=_place(spec, wanted[0]),
        message=f"{message}, and it may go nowhere else",
        hint=f"create {them} there{listing}, or ship {them} with the workload",
        severity=Severity.WARNING,
    )


def _place(spec: DeploySpec, prerequisite: Prerequisite) -> Loc:
    """Return the location of the object that needs a prerequisite; that of the spec for commands."""
    for index, resource in enumerate(spec.manifests):
        manifest = resource.manifest
        if prerequisite.by == shortened(f"{manifest.get('kind')} {at(manifest, ('metadata', 'name'))}"):
            return ("spec", "manifestResources", index)
    return ("spec",)


def warn_unexported(
    spec: DeploySpec, workspace: Workspace, engines: Iterable[EngineName], kinds: Kinds
) -> Iterator[Finding]:
    """Warn of Services that cannot be exported, and of charts whose Services these engines do not render here."""
    shared = workspace.shared_networking
    if shared is None:
        return
    placed = [
        (index, manifest)
        for index, resource in enumerate(spec.manifests)
        for manifest in with_wrapped(resource.manifest, kinds)
    ]
    manifests = [manifest for _, manifest in placed]
    for index, manifest in placed:
        made = export(manifest, shared, manifests, kinds) if service(manifest) else None
        if isinstance(made, Unexportable):
            loc: Loc = ("spec", "manifestResources", index)
            what = f"Service {shortened(str(at(manifest, ('metadata', 'name'))))} is not exported: {made.message}"
            yield Finding(loc=loc, message=what, hint=made.hint, severity=Severity.WARNING)
    charts = {chart.name: index for index, chart in enumerate(spec.helm)}
    for chart in dict.fromkeys(chart.name for chart in chart_steps(spec)):
        blind = [
            str(name)
            for name in sorted({*engines})
            if all(chart != chart_config.name for chart_config in engine(name).to_render(spec))
        ]
        if blind:
            installs = "which installs it" if len(blind) == 1 else "which install it"
            yield Finding(
                loc=("spec", "helmConfig", charts[chart]),
                message=f"the Services of chart {chart} are not exported under {join_names(blind)}, {installs}",
                hint="add a ServiceExport for each as a manifest",
                severity=Severity.WARNING,
            )


def warn_unserved(
    spec: DeploySpec,
    places: Iterable[tuple[Cluster, Sequence[Prerequisite], ClusterObservation | None]],
    kinds: Kinds,
) -> Iterator[Finding]:
    """Warn of API versions that clusters do not serve, each at its object.

    Each cluster comes with what the spec needs there, and as it is observed.
    """
    unserved: dict[UnservedVersion, list[ClusterName]] = {}
    for cluster, prerequisites, seen in places:
        for version in unserved_versions(cluster, prerequisites, seen):
            unserved.setdefault(version, []).append(cluster.name)
    for version, names in unserved.items():
        yield Finding(
            loc=_place_of_version(spec, version.needed, kinds),
            message=f"{join_names(names)} {version.message}" + (": no burst of it goes there" * version.refuses),
            hint=version.remedy,
            severity=Severity.WARNING,
        )


def _place_of_version(spec: DeploySpec, prerequisite: Prerequisite, kinds: Kinds) -> Loc:
    """Return the location of the first ``apiVersion`` of this value; that of the spec for commands."""
    for index, resource in enumerate(spec.manifests):
        root: Loc = ("spec", "manifestResources", index, "manifest")
        for place, manifest in (((), resource.manifest), *held_objects(resource.manifest, kinds)):
            if at(manifest, ("apiVersion",)) == prerequisite.name:
                return (*root, *place, "apiVersion")
    return ("spec",)


def check_prerequisites(
    spec: DeploySpec,
    prerequisites: Sequence[Prerequisite],
    workspace: Workspace,
    clusters: Sequence[Cluster],
    kinds: Kinds,
    *,
    seen: Mapping[ClusterName, ClusterObservation],
    complete: bool,
) -> Iterator[Finding]:
    """Warn of the prerequisites that these clusters may lack, and of content that will not work there.

    `seen` are the clusters as they are observed, where they are. `complete` is False if the spec may go to other
    clusters as well, such as one whose file is broken.
    """
    if complete:
        yield from warn_unprovided(spec, prerequisites, clusters, seen)
    yield from warn_undeclared(prerequisites, clusters, seen)
    yield from warn_shared_claims(spec, kinds)
    yield from warn_unexported(spec, workspace, (cluster.engine for cluster in clusters), kinds)


def warn_undeclared(
    prerequisites: Sequence[Prerequisite],
    clusters: Sequence[Cluster],
    seen: Mapping[ClusterName, ClusterObservation],
) -> Iterator[Finding]:
    """Warn, once for all, of prerequisites that clusters neither declare nor deny, and that are not seen there."""
    lacks = {
        cluster.name: doubtful
        for cluster in clusters
        if (doubtful := undeclared(cluster, prerequisites, seen.get(cluster.name)))
    }
    if not lacks:
        return
    things = [prerequisite for prerequisite in prerequisites if any(prerequisite in lack for lack in lacks.values())]
    message = f"{join_names(lacks)} may lack {join_names(map(describe_prerequisite, things))}"
    fields = declaring_fields(things, ())
    hint = f"list all that the cluster has in its {fields}; what such a list leaves out counts as absent"
    yield Finding(loc=("spec",), message=message, hint=hint, severity=Severity.WARNING)


def burst_clusters(policy: BurstPolicy | None, workspace: Workspace, desired: Desired) -> tuple[Cluster, ...]:
    """List the clusters that a policy bursts a template to; none without a policy."""
    candidates = ordered_candidates(policy, workspace, desired.clusters) if policy is not None else ()
    return _described_clusters([candidate.cluster for candidate in candidates], desired)


def asked_clusters(named: Sequence[ClusterName], workspace: Workspace, desired: Desired) -> tuple[Cluster, ...]:
    """List the clusters that a request names, else all clusters that it may go to."""
    return _described_clusters(named or workspace.destinations, desired)


def _described_clusters(names: Sequence[ClusterName], desired: Desired) -> tuple[Cluster, ...]:
    """Return the clusters that files describe; a partition of Slurm takes nothing, whatever it has."""
    described = (desired.clusters[name] for name in names if name in desired.clusters)
    return tuple(cluster for cluster in described if cluster.slurm is None)
