"""The kind BurstPolicy of ``overspill.dev``: when workloads may burst, to which clusters, how far and how long."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from reconciler.core.schema.signals import Signals
from reconciler.core.schema.strict_model import Duration, Labels, Metadata, Name, Strict, Text, Window, refusal
from reconciler.core.schema.taints import TolerationFile
from reconciler.model import policy as model
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.units import format_duration

_DEFAULTS = model.BurstPolicy(name="defaults")


class ClusterPreferenceFile(Strict):
    """One rung of the order: a cluster by name, or all clusters of the workspace with these labels."""

    name: Name | None = None
    match_labels: Labels = Field({})
    max_replicas: Annotated[int, Field(ge=0)] | None = Field(
        None, description="The most replicas on each such cluster."
    )
    min_replicas: Annotated[int, Field(ge=0)] = Field(
        0, description="Replicas that each such cluster has before others get more; no reason to place any."
    )
    weight: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Its share, where distribution.strategy is Weighted; 1 where it is not said."
    )

    @model_validator(mode="after")
    def _one_way(self) -> ClusterPreferenceFile:
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


class SpreadConstraintFile(Strict):
    """Over how many values of a cluster label replicas are spread."""

    spread_by_label: Text
    min_groups: Annotated[int, Field(ge=0)] = Field(0, description="Values that have some, at least.")
    max_groups: Annotated[int, Field(ge=1)] | None = Field(None, description="Values that have some, at most.")

    @model_validator(mode="after")
    def _in_order(self) -> SpreadConstraintFile:
        """Refuse a constraint without bounds, and a minimum above the maximum."""
        if not self.min_groups and self.max_groups is None:
            raise refusal("has neither minGroups nor maxGroups", "try maxGroups: 1")
        _in_order("minGroups", self.min_groups, "maxGroups", self.max_groups)
        return self


class DistributionFile(Strict):
    """How replicas are shared out over the clusters. What runs stays where it is; only what is new is shared out."""

    strategy: Annotated[model.StrategyName, Field(strict=False)] = _DEFAULTS.distribution.strategy
    min_clusters: Annotated[int, Field(ge=0)] = Field(0, description="Clusters that have some, at least.")
    max_clusters: Annotated[int, Field(ge=1)] | None = Field(None, description="Clusters that have some, at most.")
    spread_constraint: SpreadConstraintFile | None = Field(None, description="Over which regions or zones.")

    @model_validator(mode="after")
    def _in_order(self) -> DistributionFile:
        """Refuse a minimum above the maximum."""
        _in_order("minClusters", self.min_clusters, "maxClusters", self.max_clusters)
        if self.spread_constraint is not None:
            _in_order("minGroups", self.spread_constraint.min_groups, "maxClusters", self.max_clusters)
        return self

    def value_of(self) -> model.Distribution:
        """Make the model's value."""
        spread = self.spread_constraint
        return model.Distribution(
            strategy=self.strategy,
            min_clusters=self.min_clusters,
            max_clusters=self.max_clusters,
            spread_by="" if spread is None else spread.spread_by_label,
            min_groups=0 if spread is None else spread.min_groups,
            max_groups=None if spread is None else spread.max_groups,
        )


def _in_order(least: str, low: int, most: str, high: int | None) -> None:
    """Refuse a minimum above the maximum."""
    if high is not None and low > high:
        raise refusal(f"{least} {low} is more than {most} {high}", f"try {least}: {high}")


class WindowFile(Strict):
    """How long something must last before it counts."""

    window: Window


class BurstDurationFile(Strict):
    """How long a placement lives, for templates that do not say so, and at most."""

    default: Duration = _DEFAULTS.default_duration
    max: Duration | None = None

    @model_validator(mode="after")
    def _in_order(self) -> BurstDurationFile:
        """Refuse a default above the maximum."""
        if self.max is not None and self.default > self.max:
            raise refusal(
                f"default {format_duration(self.default)} is longer than max {format_duration(self.max)}",
                f"try default: {format_duration(self.max)}",
            )
        return self


class BurstPolicySpec(Strict):
    """When a workload may burst, where to, how far, and how long."""

    workspaces: list[Name] = Field([], description="Workspaces that it governs; none named: all.")
    templates: list[Name] = Field([], description="WorkloadTemplates that it governs; none named: all.")
    priority: int = Field(0, description="Who goes first when capacity is short; higher is earlier.")
    clusters: list[ClusterPreferenceFile] = Field(
        [], description="Where to, best first; none named: all of the workspace."
    )
    distribution: DistributionFile = Field(
        DistributionFile(), validate_default=True, description="How replicas are shared out over these clusters."
    )
    require_labels: Labels = Field({}, description="Labels that a cluster must have.")
    tolerations: list[TolerationFile] = Field([], description="Taints of clusters and nodes that bursts put up with.")
    max_replicas: Annotated[int, Field(ge=0)] | None = Field(
        None, description="The most replicas of one workload, all in all."
    )
    scale_up: WindowFile = Field(
        WindowFile(window=_DEFAULTS.scale_up_window), description="How long replicas must be missing before a burst."
    )
    scale_down: WindowFile = Field(
        WindowFile(window=_DEFAULTS.scale_down_window), description="How long they must not be missing before it goes."
    )
    cool_down: Window = Field(_DEFAULTS.cool_down, description="The rest after a burst has gone.")
    hold: Window = Field(_DEFAULTS.hold, description="How long a placement that a person deleted stays away.")
    in_flight_timeout: Duration = Field(
        _DEFAULTS.in_flight_timeout, description="How long a placement may take to get its nodes."
    )
    rollout_timeout: Duration = Field(
        _DEFAULTS.rollout_timeout, description="How long a placement may not be healthy before it is taken back."
    )
    duration: BurstDurationFile = BurstDurationFile()
    signals: Signals = Field([], description="What asks for replicas beside what clusters report.")

    @field_validator("distribution", mode="after")
    @classmethod
    def _weighed(cls, given: DistributionFile, info: ValidationInfo) -> DistributionFile:
        """Refuse weights that no strategy uses."""
        clusters: list[ClusterPreferenceFile] = info.data.get("clusters", [])
        idle = [place for place, candidate in enumerate(clusters) if candidate.weight is not None]
        if idle and given.strategy is not model.StrategyName.WEIGHTED:
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
            candidates=tuple(candidate.value_of() for candidate in spec.clusters),
            distribution=spec.distribution.value_of(),
            require_labels=spec.require_labels,
            tolerations=tuple(toleration.value_of() for toleration in spec.tolerations),
            max_replicas=spec.max_replicas,
            scale_up_window=spec.scale_up.window,
            scale_down_window=spec.scale_down.window,
            cool_down=spec.cool_down,
            hold=spec.hold,
            in_flight_timeout=spec.in_flight_timeout,
            rollout_timeout=spec.rollout_timeout,
            default_duration=spec.duration.default,
            max_duration=spec.duration.max,
            signals=tuple(signal.value_of() for signal in spec.signals),
        )
