"""The order of clusters for each workload, as far as the fleet repository alone determines it.

Computed once for each policy and workspace, and kept as long as the repository does not change: a pass over thousands
of placements only looks clusters up in a set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from reconciler.core.fleet.object_owners import ObjectOwners
from reconciler.core.fleet.sources.patches import PatchedTemplates
from reconciler.core.ledger.lifecycle import renewal
from reconciler.core.pods.taints import untolerated_taint
from reconciler.core.spread.subset_selection import allows_cluster, node_requirements, selects_cluster
from reconciler.model.candidate import Candidate
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.placement import ClusterSubset, Placement
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import Availability, BurstPolicy, Cluster, ClusterPreference, Desired, Renewal, Workspace
from reconciler.text.wording import sanitize

_Key = tuple[str | tuple[str, ...], WorkspaceName]


def ordered_candidates(
    policy: BurstPolicy, workspace: Workspace, clusters: Mapping[ClusterName, Cluster]
) -> tuple[Candidate, ...]:
    """Expand the clusters of a policy to single clusters, each once, at its first mention.

    Labels match clusters of the workspace only, by name within one entry. A cluster that is named stays in the order
    even if it is unusable, so that its refusal can be reported. A burst never goes to the primary. For requests the
    primary is a cluster like the others, unless its workspace refuses requests there.

    The subsets of a WorkloadSpread come first, and in each subset its clusters by name. The other clusters of the
    policy follow, in no subset, unless a subset takes all of their nodes.
    """
    named: dict[ClusterName, ClusterPreference] = {}
    tiers: dict[int, int] = {}
    for tier, candidate in enumerate(policy.candidates if policy.distribution.tiers else ()):
        tiers[id(candidate)] = tier
    for candidate in policy.candidates:
        if candidate.name is not None:
            named.setdefault(candidate.name, candidate)
            continue
        for name in sorted(workspace.clusters):
            cluster = clusters.get(name)
            if cluster is not None and candidate.match_labels.items() <= cluster.labels.items():
                named.setdefault(name, candidate)
    if not policy.candidates and not policy.subsets:
        named = dict.fromkeys(sorted(workspace.destinations), ClusterPreference())
    if not policy.to_primary:
        named.pop(workspace.primary, None)
    before = _subset_candidates(policy.subsets, workspace, clusters, named)
    for subset in policy.subsets:
        for name in [name for name in named if name in clusters and selects_cluster(subset, clusters[name])]:
            if not node_requirements(subset, clusters[name]):
                del named[name]
    constraints = policy.distribution.spread_constraints
    return before + tuple(
        Candidate(
            cluster=name,
            rank=rank,
            limit=candidate.max_replicas,
            least=0 if policy.subsets else candidate.min_replicas,
            weight=candidate.weight,
            groups=tuple(labels.get(bound.label, "") for bound in constraints),
            tier=tiers.get(id(candidate), 0),
        )
        for rank, (name, candidate) in enumerate(named.items(), start=len(before) + 1)
        for labels in [clusters[name].labels if name in clusters else {}]
    )


def _subset_candidates(
    subsets: Sequence[Subset],
    workspace: Workspace,
    clusters: Mapping[ClusterName, Cluster],
    named: Mapping[ClusterName, ClusterPreference],
) -> tuple[Candidate, ...]:
    """Expand each subset to its clusters, with the weights of those that the policy has named.

    The primary is left out: its replicas are no burst.
    """
    others = sorted(name for name in workspace.clusters if name in clusters and name != workspace.primary)
    described = [clusters[name] for name in others]
    sites = (
        (cluster.name, subset.name) for subset in subsets for cluster in described if selects_cluster(subset, cluster)
    )
    unnamed = ClusterPreference()
    return tuple(
        Candidate(cluster=cluster, rank=rank, subset=subset, weight=named.get(cluster, unnamed).weight)
        for rank, (cluster, subset) in enumerate(sites, start=1)
    )


def candidate_of(order: Iterable[Candidate], cluster: ClusterName) -> Candidate:
    """Return the candidate of a cluster in an order; without a rank if the order does not contain it."""
    return next(
        (candidate for candidate in order if candidate.cluster == cluster),
        Candidate(cluster=cluster, rank=0),
    )


def tainted(cluster: Cluster, taint: Taint, policy: BurstPolicy, workload: WorkloadId) -> Refusal:
    """Refuse a cluster for its taint."""
    return Refusal(
        cluster=cluster.name,
        reason=Reason.TAINTED,
        message=f"tainted {taint}",
        remedy=f"add a toleration for it to {'its pods' if workload.request else f'policy {policy.name}'}",
    )


def _missing_label(cluster: Cluster, policy: BurstPolicy) -> Refusal | None:
    """Say which label a cluster would need for a policy, or None where it has them all."""
    for key, value in sorted(policy.require_labels.items()):
        if cluster.labels.get(key) != value:
            return Refusal(
                cluster=cluster.name,
                reason=Reason.LABELS,
                message=f"needs label {key}={value}, has {key}={cluster.labels.get(key, '')}",
                remedy=f"label the Cluster {key}={value}, or change spec.requireLabels of policy {policy.name}",
            )
    for bound in policy.distribution.spread_constraints:
        if bound.label not in cluster.labels:
            return Refusal(
                cluster=cluster.name,
                reason=Reason.LABELS,
                message=f"has no label {bound.label}, over which policy {policy.name} spreads",
                remedy=f"label the Cluster {bound.label}=<its {bound.label.rpartition('/')[2]}>",
            )
    return None


class ClusterOrder:
    """The candidates of every workload of one Desired. Independent of time and of observations."""

    def __init__(self, desired: Desired) -> None:
        """Start without answers; each is computed when it is first asked for."""
        self._desired = desired
        self._keys: dict[WorkloadId, _Key] = {}
        self._orders: dict[_Key, tuple[Candidate, ...]] = {}
        self._lowest_limit: dict[_Key, int | None] = {}
        self._allowed: dict[_Key, frozenset[ClusterName]] = {}
        self._named: dict[_Key, frozenset[ClusterName]] = {}
        self._places: dict[_Key, frozenset[ClusterSubset]] = {}
        self._scheduled: tuple[BurstPolicy, ...] | None = None
        self._bounded: tuple[WorkloadId, ...] | None = None
        self._renews: bool | None = None
        self._approval: bool | None = None
        self._spot: bool | None = None
        self.makers = ObjectOwners(desired)
        self.patched = PatchedTemplates(desired)

    def with_requests(self, desired: Desired, changed: Collection[WorkloadId]) -> ClusterOrder:
        """Return the order for a fleet that differs in these requests only; other answers are kept."""
        other = ClusterOrder(desired)
        other._orders, other._lowest_limit = self._orders, self._lowest_limit
        other._allowed, other._named, other._places = self._allowed, self._named, self._places
        # Requests have neither schedules nor spreads, and are not renewed.
        other._scheduled, other._renews = self._scheduled, self._renews
        other._approval, other._bounded = self._approval, self._bounded
        other.patched = self.patched
        other.makers = self.makers.with_requests(desired, changed)
        return other

    def order(self, workload: WorkloadId) -> tuple[Candidate, ...]:
        """Return the clusters that a workload with a policy may burst to, in order."""
        policy, key = self._desired.policies[workload], self._key(workload)
        if key not in self._orders:
            self._orders[key] = ordered_candidates(
                policy, self._desired.workspaces[workload.workspace], self._desired.clusters
            )
        return self._orders[key]

    def named(self, workload: WorkloadId) -> frozenset[ClusterName]:
        """Return the set of clusters that a workload with a policy may burst to."""
        key = self._key(workload)
        if key not in self._named:
            self._named[key] = frozenset(candidate.cluster for candidate in self.order(workload))
        return self._named[key]

    def lowest_limit(self, workload: WorkloadId) -> int | None:
        """Return the lowest limit that any cluster sets for a workload; None without limits."""
        key = self._key(workload)
        if key not in self._lowest_limit:
            limits = (candidate.limit for candidate in self.order(workload) if candidate.limit is not None)
            self._lowest_limit[key] = min(limits, default=None)
        return self._lowest_limit[key]

    def allowed(self, workload: WorkloadId) -> frozenset[ClusterName]:
        """Return the clusters where a workload with a policy may keep its placements, whatever its pods tolerate."""
        key = self._key(workload)
        if key not in self._allowed:
            clusters = self._desired.workspaces[workload.workspace].clusters
            self._allowed[key] = frozenset(name for name in clusters if not self.exclusion(workload, name))
        return self._allowed[key]

    def scheduled(self) -> tuple[BurstPolicy, ...]:
        """List the policies that govern a workload and have a signal that follows the time, each once."""
        if self._scheduled is None:
            policies = self._desired.policies.values()
            timed = (policy for policy in policies if not all(signal.source for signal in policy.signals))
            self._scheduled = tuple({policy.name: policy for policy in timed}.values())
        return self._scheduled

    def renews(self) -> bool:
        """Return whether the bursts of any workload are renewed."""
        if self._renews is None:
            self._renews = any(
                renewal(self._desired.templates[workload], policy) is not Renewal.NEVER
                for workload, policy in self._desired.policies.items()
            )
        return self._renews

    def asks_approval(self) -> bool:
        """Return whether any policy that governs a workload has bursts approved."""
        if self._approval is None:
            self._approval = any(policy.approval is not None for policy in self._desired.policies.values())
        return self._approval

    def has_spot_prices(self) -> bool:
        """Return whether any cluster has a price of its own for spot nodes."""
        if self._spot is None:
            self._spot = any(cluster.spot is not None for cluster in self._desired.clusters.values())
        return self._spot

    def with_bounds(self) -> tuple[WorkloadId, ...]:
        """List the workloads whose policy bounds the clusters with replicas, or values of a label, by name.

        A lower bound of one says nothing.
        """
        if self._bounded is None:
            self._bounded = tuple(
                sorted(
                    workload
                    for workload, policy in self._desired.policies.items()
                    if policy.distribution.spreads or policy.distribution.is_capped
                )
            )
        return self._bounded

    def exclusion(
        self, workload: WorkloadId, name: ClusterName, *, subset: str = "", tolerations: tuple[Toleration, ...] = ()
    ) -> Refusal | None:
        """Return why replicas of a workload may not be on a cluster, neither new ones nor those that run; None if so.

        `subset` is the one that they are for, and `tolerations` are those of their pods. Only statements of files
        count; a cluster that is merely unseen excludes nothing.
        """
        cluster, policy = self._desired.clusters.get(name), self._desired.policies[workload]
        workspace = self._desired.workspaces[workload.workspace]
        # 1. No file describes the cluster.
        if cluster is None:
            return Refusal(
                cluster=name,
                reason=Reason.UNKNOWN_CLUSTER,
                message="no Cluster of this name is in the fleet repository",
                remedy=f"add a Cluster named {name}",
            )
        # 2. The cluster is not in the workspace.
        if name not in workspace.clusters:
            return Refusal(
                cluster=name,
                reason=Reason.NOT_IN_WORKSPACE,
                message=f"not a cluster of workspace {workspace.name}",
                remedy=f"add it to spec.clusters of workspace {workspace.name}",
            )
        # 3. The cluster is the primary, and the workspace refuses requests there.
        if policy.to_primary and name not in workspace.destinations:
            return Refusal(
                cluster=name,
                reason=Reason.NOT_IN_POLICY,
                message=f"the primary of workspace {workspace.name}, which takes no requests",
                remedy=f"set spec.requestsOnPrimary: true in workspace {workspace.name}",
            )
        # 4. The policy does not name the cluster. Replicas of a deleted subset stay until they come home.
        policy_refusal = self.policy_refusal(workload, name)
        if policy_refusal is not None and (name == workspace.primary or not policy.subsets):
            return policy_refusal
        # 5. Its subset no longer selects the cluster.
        outside = self._outside_spread(workload, cluster, subset)
        if outside is not None:
            return outside
        # 6. The cluster is draining.
        if cluster.availability is Availability.DRAINING:
            return Refusal(
                cluster=name,
                reason=Reason.CORDONED,
                message="it is Draining",
                remedy="set its spec.availability to Active",
            )
        # 7. The policy asks for labels that it does not have.
        unlabelled = _missing_label(cluster, policy)
        if unlabelled is not None:
            return unlabelled
        # 8. It has a taint that evicts what does not tolerate it.
        evicting = (taint for taint in cluster.taints if taint.effect == "NoExecute")
        taint = untolerated_taint(policy.tolerations + tolerations, evicting)
        return None if taint is None else tainted(cluster, taint, policy, workload)

    def exclusion_of(self, placement: Placement) -> Refusal | None:
        """Return why a placement may not be on its cluster, by the tolerations of its pods and for its subset."""
        return self.exclusion(
            placement.workload, placement.cluster, subset=placement.subset, tolerations=placement.shape.tolerations
        )

    def _outside_spread(self, workload: WorkloadId, cluster: Cluster, subset: str) -> Refusal | None:
        """Say why the WorkloadSpread of a workload keeps it off a cluster; None where it does not.

        A spread that does not divide the replicas allows clusters alone.
        """
        policy = self._desired.policies[workload]
        bounds = policy.bounds
        if policy.subset(subset) is not None:
            if (cluster.name, subset) in self._slots(workload):
                return None
            name = sanitize(subset)
            return Refusal(
                cluster=cluster.name,
                subset=subset,
                reason=Reason.NOT_IN_POLICY,
                message=f"not in subset {name} of {policy.slot_file} any more",
                remedy=f"label the Cluster as subset {name} requires, or change the subset",
            )
        if bounds is None or any(allows_cluster(each, cluster) for each in bounds.subsets):
            return None
        return Refusal(
            cluster=cluster.name,
            reason=Reason.NOT_IN_POLICY,
            message=f"in no subset of WorkloadSpread {bounds.id} as a whole",
            remedy="label the Cluster as one of them requires, or change the WorkloadSpread",
        )

    def _slots(self, workload: WorkloadId) -> frozenset[ClusterSubset]:
        """Return the clusters that a workload may burst to, each with the subset that it is for."""
        key = self._key(workload)
        if key not in self._places:
            self._places[key] = frozenset(candidate.key for candidate in self.order(workload))
        return self._places[key]

    def policy_refusal(self, workload: WorkloadId, name: ClusterName) -> Refusal | None:
        """Refuse new replicas on a cluster that the policy does not name; None if it does."""
        if name in self.named(workload):
            return None
        spread = self._desired.policies[workload].spread
        if workload.request:
            message = "not among the clusters of the request"
            remedy = "ask for it again, with this cluster among the others"
        elif name == self._desired.workspaces[workload.workspace].primary:
            message, remedy = "the primary cluster itself", ""
        elif spread is not None:
            message, remedy = f"in no subset of WorkloadSpread {spread.id}", "label it as one of them requires"
        else:
            message, remedy = "not among the clusters of the policy", "add it to spec.clusters of the policy"
        return Refusal(cluster=name, reason=Reason.NOT_IN_POLICY, message=message, remedy=remedy)

    def _key(self, workload: WorkloadId) -> _Key:
        """Return the cache key of an order: the policy, or the clusters that a request names."""
        key = self._keys.get(workload)
        if key is None:
            key = self._keys[workload] = self._work_out_key(workload)
        return key

    def _work_out_key(self, workload: WorkloadId) -> _Key:
        """Compute the cache key. Workloads of one policy may have different WorkloadSpreads."""
        policy = self._desired.policies[workload]
        if policy.to_primary:
            return tuple(candidate.name or "" for candidate in policy.candidates), workload.workspace
        if policy.spread is not None:
            return f"{policy.name} {policy.spread.id}", workload.workspace  # no policy's name has a space
        if policy.bounds is not None:
            return f"{policy.name} within {policy.bounds.id}", workload.workspace
        return policy.name, workload.workspace
