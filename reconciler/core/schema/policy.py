"""The kind BurstPolicy of ``overspill.dev``: when workloads may burst, to which clusters, how far and how long."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from reconciler.core.pods.label_syntax import is_label_key
from reconciler.core.schema.budget import BudgetFile, Dollars
from reconciler.core.schema.signals import Signals
from reconciler.core.schema.strict_model import Duration, Labels, Metadata, Name, Strict, Text, Window, refusal
from reconciler.core.schema.taints import CheckedTolerationFile
from reconciler.model import policy as model
from reconciler.model.approval import ApprovalRule
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.score import ScorerName, ScorerWeight
from reconciler.model.units import format_duration
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

_DEFAULTS = model.BurstPolicy(name="defaults")


class ClusterPreferenceFile(Strict):
    """An entry of the order of clusters: a cluster by name, or all clusters of the workspace with these labels."""

    name: Name | None = Field(None, description="One cluster; either this or `matchLabels`.")
    match_labels: Labels = Field({}, description="All clusters of the workspace with these labels, by name.")
    max_replicas: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Most replicas on each of these clusters."
    )
    min_replicas: Annotated[int, Field(ge=0)] = Field(
        0, description="Replicas that each of these clusters gets before others get more. It places none by itself."
    )
    weight: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description=(
            "Its share where the strategy is Weighted; `1` where it is not said, `0` for no more than `minReplicas`."
        ),
    )

    @model_validator(mode="after")
    def _refuse_several_selectors(self) -> ClusterPreferenceFile:
        """Refuse an entry that selects in two ways or in none."""
        if (self.name is None) == (not self.match_labels):
            both = self.name is not None
            raise refusal(
                "has both name and matchLabels" if both else "has neither name nor matchLabels",
                "try two entries" if both else "try name: worker-2",
            )
        if self.max_replicas is not None and self.min_replicas > self.max_replicas:
            raise refusal(
                f"minReplicas {self.min_replicas} is more than maxReplicas {self.max_replicas}",
                f"try minReplicas: {self.max_replicas}",
            )
        return self

    def value_of(self) -> model.ClusterPreference:
        """Make the model's value."""
        return model.ClusterPreference(
            name=None if self.name is None else ClusterName(self.name),
            match_labels=self.match_labels,
            max_replicas=self.max_replicas,
            min_replicas=self.min_replicas,
            weight=1 if self.weight is None else self.weight,
        )


class ScorerWeightFile(Strict):
    """A scorer that orders the clusters. Each gives 0 to 100 points, and their mean by weight counts."""

    name: Annotated[ScorerName, Field(strict=False)] = Field(description="The scorer.")
    weight: Annotated[int, Field(ge=1, le=100)] = Field(
        1, description="How much it counts beside the others, 100 at most."
    )

    def value_of(self) -> ScorerWeight:
        """Make the model's value."""
        return ScorerWeight(name=self.name, weight=self.weight)


class GroupTopologyFile(Strict):
    """The topology domain, all nodes with one value of a label, that the pods of each group share."""

    key: Text = Field(description="The label of nodes, as `topology.kubernetes.io/rack` or `nvidia.com/gpu.clique`.")
    mode: Annotated[model.TopologyMode, Field(strict=False)] = Field(
        model.TopologyMode.REQUIRED,
        description="Whether a cluster has to hold a whole group in one domain, or comes first where it does.",
    )

    @field_validator("key", mode="after")
    @classmethod
    def _label(cls, given: str) -> str:
        """Refuse what no label is called."""
        if not is_label_key(given):
            raise refusal(
                f"{shortened(given)!r} cannot be the name of a label", "try one like topology.kubernetes.io/rack"
            )
        return given

    def value_of(self) -> model.GroupTopology:
        """Make the model's value."""
        return model.GroupTopology(key=self.key, mode=self.mode)


class SpreadConstraintFile(Strict):
    """Over how many values of a cluster label replicas are spread."""

    spread_by_label: Text = Field(
        description="The label of clusters that tells them apart; a cluster without it takes and keeps nothing."
    )
    min_groups: Annotated[int, Field(ge=0)] = Field(
        0, description="Values of it that have some of one workload, at least; either this or `maxGroups`."
    )
    max_groups: Annotated[int, Field(ge=1)] | None = Field(None, description="Most label values with replicas.")

    @model_validator(mode="after")
    def _in_order(self) -> SpreadConstraintFile:
        """Refuse a constraint without bounds, and a minimum above the maximum."""
        if not self.min_groups and self.max_groups is None:
            raise refusal("has neither minGroups nor maxGroups", "try maxGroups: 1")
        _in_order("minGroups", self.min_groups, "maxGroups", self.max_groups)
        return self

    def value_of(self, place: int | None) -> model.SpreadConstraint:
        """Make the model's value of the constraint at a place of `spreadConstraints`; None for the short form."""
        return model.SpreadConstraint(
            label=self.spread_by_label, min_groups=self.min_groups, max_groups=self.max_groups, place=place
        )


class DistributionFile(Strict):
    """The division of new replicas over the clusters. Running replicas stay on their cluster."""

    strategy: Annotated[model.StrategyName, Field(strict=False)] = Field(
        _DEFAULTS.distribution.strategy,
        description="By the order, by `weight`, by what fits, or on the fewest clusters.",
    )
    min_clusters: Annotated[int, Field(ge=0)] = Field(0, description="Least number of clusters with replicas.")
    max_clusters: Annotated[int, Field(ge=1)] | None = Field(None, description="Most clusters with replicas.")
    spread_constraint: SpreadConstraintFile | None = Field(
        None, description="Bounds on regions or zones; the short form of `spreadConstraints` with one of them."
    )
    spread_constraints: Annotated[list[SpreadConstraintFile], Field(max_length=4)] = Field(
        [], description="Bounds on the values of several labels, which hold at the same time."
    )
    sets: Annotated[model.SetDivision, Field(strict=False)] = Field(
        _DEFAULTS.sets, description="A set on one cluster, or its groups divided over several, each whole."
    )
    tiers: bool = Field(
        False, description="Each entry of `clusters` is filled before the next; the strategy divides within an entry."
    )

    @field_validator("strategy", mode="before")
    @classmethod
    def _refuse_duplicates(cls, given: Json) -> Json:
        """Refuse Karmada's Duplicated, with what is wanted instead (docs/decisions/0039)."""
        if given == "Duplicated":
            raise refusal(
                "'Duplicated' is no strategy: each missing replica is placed once", "try Balanced, and headroom"
            )
        return given

    @model_validator(mode="after")
    def _in_order(self) -> DistributionFile:
        """Refuse a minimum above the maximum, and tiers of clusters that are filled in order anyhow."""
        if self.tiers and model.STRATEGIES[self.strategy].fills_in_order:
            raise refusal("tiers need a strategy that divides within them", "try strategy: Balanced")
        _in_order("minClusters", self.min_clusters, "maxClusters", self.max_clusters)
        if self.spread_constraint is not None and self.spread_constraints:
            raise refusal("has both spreadConstraint and spreadConstraints", "try moving it into spreadConstraints")
        labels = [bound.label for bound in self.constraints()]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if twice is not None:
            raise refusal(f"has two spreadConstraints by {shortened(twice)}", "try one with minGroups and maxGroups")
        for bound in self.constraints():
            _in_order("minGroups", bound.min_groups, "maxClusters", self.max_clusters)
        return self

    def constraints(self) -> tuple[model.SpreadConstraint, ...]:
        """Make the model's values of the constraints, in either form."""
        if self.spread_constraint is not None:
            return (self.spread_constraint.value_of(None),)
        return tuple(bound.value_of(place) for place, bound in enumerate(self.spread_constraints))

    def value_of(self) -> model.Distribution:
        """Make the model's value."""
        return model.Distribution(
            strategy=self.strategy,
            min_clusters=self.min_clusters,
            max_clusters=self.max_clusters,
            spread_constraints=self.constraints(),
            tiers=self.tiers,
        )


def _in_order(least: str, low: int, most: str, high: int | None) -> None:
    """Refuse a minimum above the maximum."""
    if high is not None and low > high:
        raise refusal(f"{least} {low} is more than {most} {high}", f"try {least}: {high}")


class WindowFile(Strict):
    """How long something must last before it counts."""

    window: Window = Field(description="How long that must last without a break.")


class MoveBudgetFile(Strict):
    """How often replicas may move between clusters because they cannot run where they are."""

    max_per_hour: Annotated[int, Field(ge=0)] = Field(
        _DEFAULTS.moves.most_per_hour, description="Most moves of one workload within an hour; 0 for none."
    )
    back_after: Window = Field(
        _DEFAULTS.moves.back_after, description="Time after a move without a move back to the cluster that was left."
    )


class BurstDurationFile(Strict):
    """How long a placement lives, for templates that do not say so, and at most."""

    default: Duration = Field(_DEFAULTS.default_duration, description="Time of a burst whose template does not say it.")
    max: Duration | None = Field(
        None, description="At most, renewals and extensions included, counted from when it was placed."
    )
    renew: Annotated[model.Renewal, Field(strict=False)] | None = Field(
        None,
        description="Whether a burst is extended by its own time again while it is needed; unset, what runs once only.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> BurstDurationFile:
        """Refuse a default above the maximum."""
        if self.max is not None and self.default > self.max:
            raise refusal(
                f"default {format_duration(self.default)} is longer than max {format_duration(self.max)}",
                f"try default: {format_duration(self.max)}",
            )
        return self


class ApprovalFile(Strict):
    """Which bursts wait for an approval: all of them, or those to which any of these bounds applies."""

    by: Literal["PullRequest"] = Field(
        "PullRequest", description="By a pull request to the output branch, or by `overspill approve`."
    )
    above_gpus: Annotated[int, Field(ge=0)] | None = Field(
        None, alias="aboveGPUs", description="Bursts that bring a workload to more GPUs outside its primary."
    )
    above_dollars_per_hour: Dollars | None = Field(
        None,
        description="Bursts that bring a workload to more dollars an hour outside its primary, or to an unknown price.",
    )
    clusters: list[Name] = Field([], description="Bursts to these clusters.")
    stands_for: Duration = Field(
        ApprovalRule().stands_for, description="How long a proposal stands; nothing is placed by it afterwards."
    )

    @model_validator(mode="before")
    @classmethod
    def _read_name(cls, value: Json) -> Json:
        """Read `PullRequest` alone as all bursts."""
        return {"by": value} if isinstance(value, str) else value

    def value_of(self) -> ApprovalRule:
        """Make the model's value."""
        return ApprovalRule(
            above_gpus=self.above_gpus,
            above_dollars_per_hour=self.above_dollars_per_hour,
            clusters=tuple(map(ClusterName, self.clusters)),
            stands_for=self.stands_for,
        )


def _or_mode(schema: dict[str, Json]) -> None:
    """Have editors accept the mode alone in place of the object."""
    schema["anyOf"] = [{"const": "PullRequest"}, *schema["anyOf"]]


class BurstPolicySpec(Strict):
    """When a workload may burst, where to, how far, and how long."""

    workspaces: list[Name] = Field([], description="Workspaces that the policy governs; empty for all.")
    templates: list[Name] = Field([], description="WorkloadTemplates that the policy governs; empty for all.")
    priority: int = Field(0, description="Priority when capacity is short; higher values go first.")
    weight: Annotated[int, Field(ge=1)] = Field(
        1, description="Part of the room that each workload gets where those of equal priority have too little."
    )
    clusters: list[ClusterPreferenceFile] = Field(
        [], description="Clusters to burst to, in order; empty for all clusters of the workspace."
    )
    topology: GroupTopologyFile | None = Field(
        None, description="Topology domain that the pods of each group share; none by default."
    )
    scoring: list[ScorerWeightFile] = Field(
        [], description="Scorers that order these clusters, the best first; as they are written by default."
    )
    distribution: DistributionFile = Field(
        DistributionFile(), validate_default=True, description="Division of replicas over these clusters."
    )
    require_labels: Labels = Field({}, description="Labels that a cluster must have; bursts leave one without them.")
    tolerations: list[CheckedTolerationFile] = Field(
        [], description="Taints of clusters and nodes that bursts tolerate."
    )
    max_replicas: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Most replicas of one workload on all clusters together."
    )
    scale_up: WindowFile = Field(
        WindowFile(window=_DEFAULTS.scale_up_window), description="Time with missing replicas before a burst."
    )
    scale_down: WindowFile = Field(
        WindowFile(window=_DEFAULTS.scale_down_window), description="Time without missing replicas before its end."
    )
    cool_down: Window = Field(
        _DEFAULTS.cool_down,
        description=(
            "The rest of a workload from a cluster where its burst failed, was evicted or reached "
            "`duration.max`; after one whose GPUs were idle, from all clusters."
        ),
    )
    hold: Window = Field(
        _DEFAULTS.hold, description="Time without a new placement on a cluster where a person deleted one."
    )
    in_flight_timeout: Duration = Field(
        _DEFAULTS.in_flight_timeout,
        description=(
            "How long a placement may take to get its nodes before its room is offered again; pods "
            "that are seen to wait keep their room for longer."
        ),
    )
    rollout_timeout: Duration = Field(
        _DEFAULTS.rollout_timeout, description="Time for which a placement may be unhealthy before it is reverted."
    )
    worker_lost_timeout: Duration | None = Field(
        None,
        description="Time after which bursts leave a lost cluster; by default 5m, and the Fleet's for gangs.",
    )
    moves: MoveBudgetFile = Field(
        MoveBudgetFile(), description="How often replicas that cannot run where they are move."
    )
    duration: BurstDurationFile = Field(BurstDurationFile(), description="How long a placement lives.")
    headroom: Annotated[int, Field(ge=0, le=1000)] = Field(
        _DEFAULTS.headroom, description="Spare replicas elsewhere as long as any replica is missing."
    )
    headroom_duration: Duration | None = Field(
        None, description="How long they stay after a replica last began to be missing; by default as long as any is."
    )
    budget: BudgetFile | None = Field(
        None, description="Dollars that the bursts of all workloads of the policy together may cost."
    )
    approval: ApprovalFile | None = Field(
        None,
        description="Bursts that wait for an approval; `PullRequest` for all of them.",
        json_schema_extra=_or_mode,
    )
    signals: Signals = Field([], description="Signals that ask for replicas in addition to unschedulable pods.")

    @field_validator("scoring", mode="after")
    @classmethod
    def _refuse_repeated_scorers(cls, given: list[ScorerWeightFile]) -> list[ScorerWeightFile]:
        """Refuse a scorer that is named twice."""
        names = [scorer.name for scorer in given]
        repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if repeated is not None:
            raise refusal(f"has scorer {repeated} twice", "try one entry with a higher weight")
        return given

    @field_validator("scoring", mode="after")
    @classmethod
    def _refuse_unused_topology(cls, given: list[ScorerWeightFile], info: ValidationInfo) -> list[ScorerWeightFile]:
        """Refuse to weigh a topology that the policy does not name."""
        if ScorerName.TOPOLOGY in {scorer.name for scorer in given} and info.data.get("topology", ...) is None:
            raise refusal("has scorer Topology, and the policy has no topology", "add spec.topology.key")
        return given

    @field_validator("distribution", mode="after")
    @classmethod
    def _refuse_unused_weights(cls, given: DistributionFile, info: ValidationInfo) -> DistributionFile:
        """Refuse weights that no strategy uses."""
        clusters: list[ClusterPreferenceFile] = info.data.get("clusters", [])
        idle = [place for place, candidate in enumerate(clusters) if candidate.weight is not None]
        if idle and not model.STRATEGIES[given.strategy].uses_weight:
            raise refusal(
                f"strategy {given.strategy} does not go by the weight of clusters[{idle[0]}]",
                "try distribution: {strategy: Weighted}",
            )
        return given

    @field_validator("max_replicas", mode="after")
    @classmethod
    def _enough(cls, given: int | None, info: ValidationInfo) -> int | None:
        """Refuse minimums whose sum exceeds the maximum."""
        clusters: list[ClusterPreferenceFile] = info.data.get("clusters", [])
        least = sum(candidate.min_replicas for candidate in clusters if candidate.name is not None)
        if given is not None and least > given:
            raise refusal(
                f"{given} is less than the minReplicas of its clusters, which come to {least}",
                f"try maxReplicas: {least}",
            )
        return given


class BurstPolicyFile(Strict):
    """When workloads may burst, where to, how far, and how long.

    One policy governs a template: the one that names it, else the one that names its workspace, else the one that names
    none.
    """

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["BurstPolicy"]
    metadata: Metadata
    spec: BurstPolicySpec = BurstPolicySpec()

    def value_of(self) -> model.BurstPolicy:
        """Make the model's value."""
        spec = self.spec
        return model.BurstPolicy(
            name=self.metadata.name,
            workspaces=tuple(WorkspaceName(name) for name in spec.workspaces),
            templates=tuple(spec.templates),
            priority=spec.priority,
            weight=spec.weight,
            candidates=tuple(candidate.value_of() for candidate in spec.clusters),
            scoring=self._scoring(),
            topology=None if spec.topology is None else spec.topology.value_of(),
            distribution=spec.distribution.value_of(),
            sets=spec.distribution.sets,
            require_labels=spec.require_labels,
            tolerations=tuple(toleration.value_of() for toleration in spec.tolerations),
            max_replicas=spec.max_replicas,
            scale_up_window=spec.scale_up.window,
            scale_down_window=spec.scale_down.window,
            cool_down=spec.cool_down,
            hold=spec.hold,
            in_flight_timeout=spec.in_flight_timeout,
            rollout_timeout=spec.rollout_timeout,
            worker_lost_timeout=spec.worker_lost_timeout,
            moves=model.MoveBudget(most_per_hour=spec.moves.max_per_hour, back_after=spec.moves.back_after),
            default_duration=spec.duration.default,
            max_duration=spec.duration.max,
            renew=spec.duration.renew,
            headroom=spec.headroom,
            headroom_duration=spec.headroom_duration,
            budget=None if spec.budget is None else spec.budget.value_of(),
            approval=None if spec.approval is None else spec.approval.value_of(),
            signals=tuple(signal.value_of() for signal in spec.signals),
        )

    def _scoring(self) -> tuple[ScorerWeight, ...]:
        """Return the scorers, with that of a preferred topology."""
        scoring, topology = tuple(scorer.value_of() for scorer in self.spec.scoring), self.spec.topology
        named = any(scorer.name is ScorerName.TOPOLOGY for scorer in scoring)
        if topology is None or topology.mode is not model.TopologyMode.PREFERRED or named:
            return scoring
        return (*scoring, ScorerWeight(name=ScorerName.TOPOLOGY))
