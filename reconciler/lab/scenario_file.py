"""The file of a scenario, kind LabScenario: a world of one's own to try a policy in."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from reconciler.core.schema import yaml
from reconciler.core.schema.errors import validation_findings
from reconciler.core.schema.observation import Time
from reconciler.core.schema.strict_model import Duration, Name, Strict, Text, Window, refusal
from reconciler.errors import InvalidInput, Problem
from reconciler.lab import demand, scenario
from reconciler.lab.scenario import Series
from reconciler.model.ids import ClusterName
from reconciler.model.units import format_duration
from reconciler.text.findings import Finding, Loc

Number = Annotated[int, Field(ge=0, le=100_000)]
Positive = Annotated[int, Field(ge=1, le=100_000)]


class ScenarioMetadata(Strict):
    """The name of the scenario."""

    name: Name


class DemandStepFile(Strict):
    """A number of replicas or GPUs from a moment on."""

    at: Window = Field(description="Since the beginning of the run.")
    count: Number


class RequestsFile(Strict):
    """A log of requests, and what one replica serves of them."""

    log: Text = Field(description="A CSV file with the columns TIMESTAMP, ContextTokens and GeneratedTokens.")
    context_tokens_per_second: Annotated[float, Field(gt=0)] = Field(description="Tokens that a replica reads.")
    generated_tokens_per_second: Annotated[float, Field(gt=0)] = Field(description="Tokens that a replica writes.")
    window: Duration = Field(timedelta(minutes=1), description="Time over which the load is averaged.")


class RecordingFile(Strict):
    """Recorded passes, and the workload whose replicas are taken from them."""

    passes: Text = Field(description="The directory of `overspill run --record`, or one of its files.")
    workload: Text = Field(description="Its object on the primary, namespace/name.")
    cluster: str = Field("", description="The primary, where several clusters report such an object.")
    begin: Time | None = Field(None, description="When the run begins; with the first pass if left out.")


class DemandFile(Strict):
    """The replicas that are wanted, at home and elsewhere together; one field is set."""

    steps: list[DemandStepFile] | None = None
    table: Text | None = Field(None, description="A CSV file with the columns second and replicas.")
    requests: RequestsFile | None = None
    recording: RecordingFile | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(field is not None for field in (self.steps, self.table, self.requests, self.recording)) != 1:
            raise refusal(
                "needs exactly one of steps, table, requests and recording", "try steps: [{at: 0s, count: 4}]"
            )
        return self


class ScenarioWorkloadFile(Strict):
    """A workload."""

    name: Name
    home: Number = Field(description="Replicas that its primary has room for.")
    gpus: Positive = Field(1, description="GPUs of one replica.")
    model: str = Field("", description="The GPU model that it needs; any if left out.")
    demand: DemandFile


class OutageFile(Strict):
    """A time without the nodes of a cluster."""

    begin: Window
    end: Duration
    seen: bool = Field(True, description="Whether its API server answers meanwhile.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end <= self.begin:
            raise refusal("end is not after begin", f"try end: {format_duration(self.begin + timedelta(hours=1))}")
        return self


class AddedNodesFile(Strict):
    """Nodes that an autoscaler adds."""

    max_nodes: Positive = Field(description="Beside those that are always there.")
    delay: Duration
    idle: Duration = timedelta(minutes=10)


class ScenarioClusterFile(Strict):
    """A cluster to burst to."""

    name: Name
    nodes: Number
    gpus_per_node: Positive = 8
    model: Text = "NVIDIA-H100-80GB-HBM3"
    price_per_gpu_hour: Annotated[float, Field(ge=0)] | None = Field(None, alias="pricePerGPUHour")
    start_up: Window = Field(timedelta(minutes=2), description="From the node of a pod to its readiness.")
    capacity: Text = Field("on-demand", description="The value of its label capacity.")
    region: str = Field("", description="The value of its label region; it has none if left out.")
    time_to_ready: Duration | None = Field(None, description="Time to a ready pod that its Cluster file declares.")
    owners: list[DemandStepFile] = Field([], description="GPUs that its owners use, who come first.")
    outages: list[OutageFile] = Field([], description="Times without its nodes.")
    autoscaling: AddedNodesFile | None = None


N = TypeVar("N", ScenarioWorkloadFile, ScenarioClusterFile)


class LabScenarioSpec(Strict):
    """The world and its demand."""

    about: str = ""
    duration: Duration
    engine_delay: Window = Field(timedelta(seconds=20), description="From a commit to the pods that it asks for.")
    workloads: list[ScenarioWorkloadFile] = Field(min_length=1)
    clusters: list[ScenarioClusterFile] = Field(min_length=1)

    @field_validator("workloads", "clusters", mode="after")
    @classmethod
    def _refuse_repeated_names(cls, given: list[N]) -> list[N]:
        """Refuse a name that is given twice, and the primary among the clusters to burst to."""
        names = [item.name for item in given]
        repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if repeated is not None:
            raise refusal(f"has {repeated} twice", "try another name")
        if any(isinstance(item, ScenarioClusterFile) and item.name == scenario.PRIMARY for item in given):
            raise refusal(f"{scenario.PRIMARY} is the primary", "say what it has room for as home of each workload")
        return given


class LabScenarioFile(Strict):
    """A scenario for `overspill lab run`."""

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["LabScenario"]
    metadata: ScenarioMetadata
    spec: LabScenarioSpec


def read_scenario(path: Path) -> scenario.Scenario:
    """Read a scenario; files that it names lie beside it. Raises InvalidInput with every problem, path and line."""
    try:
        documents = yaml.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidInput(f"reading {path}: {error.strerror}") from error
    if len(documents) != 1:
        raise InvalidInput(f"{path}: holds {len(documents)} documents, and one LabScenario is read (try one of them)")
    (document,) = documents
    try:
        file = LabScenarioFile.model_validate(document.value)
    except ValidationError as error:
        findings = validation_findings(error, LabScenarioFile)
        raise InvalidInput(
            problems=tuple(finding.problem(path=str(path), line=document.line(finding.loc)) for finding in findings)
        ) from error
    spec = file.spec
    demands: list[scenario.DemandScenario] = []
    problems: list[Problem] = []
    for index, workload in enumerate(spec.workloads):
        try:
            demands.append(_demand(workload, path.parent))
        except InvalidInput as error:
            loc: Loc = ("spec", "workloads", index, "demand", *_source(workload.demand))
            messages = [str(problem) for problem in error.problems] or [str(error)]
            findings = tuple(Finding(loc=loc, message=message) for message in messages)
            problems += (finding.problem(path=str(path), line=document.line(loc)) for finding in findings)
    if problems:
        raise InvalidInput(problems=tuple(problems))
    return scenario.Scenario(
        name=file.metadata.name,
        about=spec.about,
        length=_seconds(spec.duration),
        demands=tuple(demands),
        clusters=tuple(_cluster(cluster) for cluster in spec.clusters),
        engine_delay=_seconds(spec.engine_delay),
    )


def _source(file: DemandFile) -> Loc:
    """Locate the file that a demand is read from."""
    if file.requests is not None:
        return ("requests", "log")
    return ("table",) if file.table is not None else ("recording",)


def _demand(file: ScenarioWorkloadFile, folder: Path) -> scenario.DemandScenario:
    return scenario.DemandScenario(
        name=file.name, wanted=_wanted(file.demand, folder), home=file.home, gpus=file.gpus, model=file.model
    )


def _wanted(file: DemandFile, folder: Path) -> Series:
    if file.table is not None:
        return demand.read_wanted(folder / file.table)
    if file.requests is not None:
        throughput = demand.Throughput(
            context_tokens=file.requests.context_tokens_per_second,
            generated_tokens=file.requests.generated_tokens_per_second,
            window=_seconds(file.requests.window),
        )
        return demand.wanted_replicas(demand.load(demand.read_requests(folder / file.requests.log), throughput))
    if file.recording is not None:
        recording = file.recording
        return demand.read_recorded(
            folder / recording.passes, recording.workload, cluster=recording.cluster, begin=recording.begin
        )
    return _series(file.steps or [])


def _cluster(file: ScenarioClusterFile) -> scenario.ClusterScenario:
    added = file.autoscaling
    return scenario.ClusterScenario(
        name=ClusterName(file.name),
        nodes=file.nodes,
        gpus=file.gpus_per_node,
        model=file.model,
        price=file.price_per_gpu_hour,
        start_up=_seconds(file.start_up),
        owners=_series(file.owners),
        outages=tuple(
            scenario.Outage(begin=_seconds(outage.begin), end=_seconds(outage.end), seen=outage.seen)
            for outage in file.outages
        ),
        added=None
        if added is None
        else scenario.AddedNodes(most=added.max_nodes, delay=_seconds(added.delay), idle=_seconds(added.idle)),
        capacity_type=file.capacity,
        region=file.region,
        declared=None if file.time_to_ready is None else _seconds(file.time_to_ready),
    )


def _series(steps: Iterable[DemandStepFile]) -> Series:
    return Series.of((_seconds(step.at), step.count) for step in sorted(steps, key=lambda step: step.at))


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
