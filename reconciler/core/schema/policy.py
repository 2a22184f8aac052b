"""The kind BurstPolicy of ``overspill.dev``: when workloads may burst, where to, how far, and how long."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from reconciler.core.schema.signals import Signals
from reconciler.core.schema.strict import Duration, Labels, Metadata, Name, Strict, Window, refusal
from reconciler.core.schema.taints import TolerationFile
from reconciler.model import policy as model
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.units import format_duration

_DEFAULTS = model.BurstPolicy(name="defaults")


class CandidateFile(Strict):
    """One rung of the order: a cluster by name, or all clusters of the workspace with these labels."""

    name: Name | None = None
    match_labels: Labels = Field({})
    max_replicas: Annotated[int, Field(ge=0)] | None = Field(
        None, description="The most replicas on each such cluster."
    )

    @model_validator(mode="after")
    def _one_way(self) -> CandidateFile:
        """Refuse a rung that selects in two ways or in none."""
        if (self.name is None) == (not self.match_labels):
            both = self.name is not None
            raise refusal(
                "has both name and matchLabels" if both else "has neither name nor matchLabels",
                "try two entries" if both else "try name: worker-2",
            )
        return self


class WindowFile(Strict):
    """How long something must last before it counts."""

    window: Window


class BurstDurationFile(Strict):
    """How long a placement lives, for templates that do not say so, and at most."""

    default: Duration = _DEFAULTS.default_duration
    max: Duration | None = None

    @model_validator(mode="after")
    def _in_order(self) -> BurstDurationFile:
        """Refuse a default beyond the maximum."""
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
    clusters: list[CandidateFile] = Field([], description="Where to, best first; none named: all of the workspace.")
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
            candidates=tuple(
                model.Candidate(
                    name=None if rung.name is None else ClusterName(rung.name),
                    match_labels=rung.match_labels,
                    max_replicas=rung.max_replicas,
                )
                for rung in spec.clusters
            ),
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
            schedules=tuple(one.schedule.value_of(one.name) for one in spec.signals if one.schedule is not None),
            queries=tuple(one.prometheus.value_of(one.name) for one in spec.signals if one.prometheus is not None),
        )
