"""A world for chains of passes: clusters with nodes, workloads of every kind of unit, and pods that find nodes or wait.

Time, demand, clusters and files change between passes, each plan is applied to the ledger, and pods follow it by the
next pass. Nothing here decides: nodes are filled first fit, pods of what has ended are gone, and those of a node that
is gone wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from reconciler.core.decide.decide import decide
from reconciler.core.decide.orders.steer import plan_revert
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.pass_memory import PassMemory
from reconciler.core.decide.steps.lost_cluster import lost_since
from reconciler.core.ledger.proposal_record import approval_path
from reconciler.core.observe.demand import measure, next_history
from reconciler.model.action import Action
from reconciler.model.approval import Approval
from reconciler.model.capacity import (
    ClusterObservation,
    MissingReplicas,
    Node,
    Observed,
    PendingPods,
    Pool,
    WorkloadObservation,
)
from reconciler.model.demand import Demand
from reconciler.model.drafted_subsets import DraftedSubsets
from reconciler.model.ids import ClusterName, CommitId, WorkloadId
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.ledger import Ledger, Placements
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import Change, Plan
from reconciler.model.policy import Availability, BurstPolicy, Cluster, ClusterPreference, Workspace
from reconciler.model.request import Request, RequestRecord
from reconciler.model.sorted_map import sorted_map
from reconciler.model.units import ONE
from reconciler.model.workload import Json, ManifestResource, WorkloadRef, WorkloadTemplate
from tests.builders.inputs import GPU, NOW, VLLM, cluster, desired, gpus, seconds, shape, template
from tests.builders.requests import deployment, manifests
from tests.builders.workload_kinds import lws, run, workload
from tests.builders.workload_kinds import template as pod_template

HOME = ClusterName("worker-1")
SITES = tuple(ClusterName(f"worker-{number}") for number in (2, 3, 4, 5))
COPY, GROUP, RUN = 2, 2, 3
"""Replicas of a copy, pods of a group, and pods of a training job."""


class Unit(StrEnum):
    """What of a workload is placed together."""

    REPLICA = "each replica"
    COPY = "copies of two"
    WHOLE = "a run of several replicas"
    RUN_COPY = "a run whose template has a fixed number of replicas"
    SET = "groups of two pods"
    RUN_GANG = "a training job of three pods"
    SUBSET = "replicas in the subsets of a WorkloadSpread"
    REQUEST = "a request by name, of two pods"

    @property
    def is_burst(self) -> bool:
        """Whether demand asks for it, and not a person by name."""
        return self is not Unit.REQUEST

    @property
    def runs_once(self) -> bool:
        """Whether a second copy would do the same work again."""
        return self in (Unit.WHOLE, Unit.RUN_COPY, Unit.RUN_GANG)

    @property
    def pods(self) -> int:
        """The pods of one replica."""
        return {Unit.SET: GROUP, Unit.RUN_GANG: RUN}.get(self, 1)

    @property
    def is_gang(self) -> bool:
        """Whether its pods start together or not at all."""
        return self in (Unit.SET, Unit.RUN_GANG)

    @property
    def is_divided(self) -> bool:
        """Whether a policy may divide it over several clusters."""
        return self in (Unit.REPLICA, Unit.COPY, Unit.RUN_COPY)

    @property
    def size(self) -> int:
        """The replicas that go together where a policy divides it."""
        return COPY if self in (Unit.COPY, Unit.RUN_COPY) else 1


@dataclass(frozen=True, kw_only=True)
class Work:
    """A workload with its policy, or a request with the clusters of one."""

    id: WorkloadId
    unit: Unit
    policy: BurstPolicy
    gpus: int = 1
    """GPUs of a pod."""

    @property
    def request(self) -> Request:
        """The file that asks for it by name, on any of the clusters of its policy."""
        clusters = tuple(each.name for each in self.policy.candidates if each.name is not None)
        return Request(
            name=self.id.name,
            workspace=self.id.workspace,
            namespace="kubeslice-demo",
            spec=manifests(deployment(2, self.gpus), lasting=timedelta(minutes=10)),
            clusters=clusters,
            placements=1,
        )

    @property
    def template(self) -> WorkloadTemplate:
        """The template that deploys it."""
        made = template(self.id)
        match self.unit:
            case Unit.COPY | Unit.RUN_COPY:
                made = replace(made, copy=COPY, uses_replicas=False)
            case Unit.SET:
                made = self._of(lws("{{ replicas }}", GROUP, worker=self.gpus), made)
            case Unit.RUN_GANG:
                roles = {"Worker": {"replicas": RUN, "template": pod_template(self.gpus)}}
                job = workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": roles})
                made = replace(self._of(job, made), uses_replicas=False)
            case Unit.WHOLE:
                job = workload(
                    "batch/v1", "Job", {"parallelism": "{{ replicas }}", "completions": 9, "template": run(self.gpus)}
                )
                made = self._of(job, made)
            case Unit.SUBSET:
                (resource,) = made.spec.manifests
                spec = {**resource.manifest["spec"], "template": pod_template(self.gpus)}
                made = self._of({**resource.manifest, "spec": spec}, made, "-{{ placement.subset }}")
            case Unit.REPLICA | Unit.REQUEST:
                pass
        return replace(made, runs_once=self.unit.runs_once)

    def _of(self, manifest: Json, made: WorkloadTemplate, suffix: str = "") -> WorkloadTemplate:
        """Deploy an object, under the name of the workload."""
        named = {**manifest, "metadata": {**manifest["metadata"], "name": f"{self.id.name}{suffix}"}}
        return replace(made, spec=replace(made.spec, manifests=(ManifestResource(name="server", manifest=named),)))

    def lacking(self, replicas: int, since: datetime) -> WorkloadObservation:
        """Observe it on its primary, where so many of its replicas have no node; what runs once is held there."""
        replicas = min(1, replicas) if self.unit is Unit.RUN_GANG else replicas
        pods, running = replicas * self.unit.pods, 0 if self.unit.runs_once else 4
        return WorkloadObservation(
            ref=WorkloadRef(namespace="demo", name=self.id.name),
            wanted=running + pods,
            running=running,
            waiting=(MissingReplicas(replicas=pods, since=since),) if pods else (),
            shape=shape(self.gpus),
            held=self.unit.runs_once,
        )


@dataclass(frozen=True, kw_only=True)
class Site:
    """A cluster that workloads may burst to."""

    name: ClusterName
    nodes: tuple[int, ...]
    """The GPUs of each node."""
    region: str = "eu"
    zone: str = "a"
    taints: tuple[Taint, ...] = ()
    availability: Availability = Availability.ACTIVE
    used: tuple[int, ...] = ()
    """GPUs of each node that others use, as far as they are free of our pods."""
    seen: bool = True

    def is_selected_by(self, entry: ClusterPreference) -> bool:
        """Return whether an entry of a policy selects it, by its name or its region."""
        return entry.name == self.name if entry.name is not None else entry.match_labels.get("region") == self.region

    @property
    def cluster(self) -> Cluster:
        """The file of the cluster; an empty region is no label."""
        labels = {"zone": self.zone, **({"region": self.region} if self.region else {})}
        return cluster(self.name, labels=labels, taints=self.taints, availability=self.availability)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What changes before a pass."""

    after: timedelta
    missing: Mapping[int, int] = field(default_factory=dict)
    """The missing replicas of workloads by their number; others lack what they lacked."""
    waited: int = 45
    """Seconds for which replicas have been missing that are missing now for the first time."""
    sites: Mapping[ClusterName, Mapping[str, object]] = field(default_factory=dict)
    """Fields of sites that are others from here on."""
    policies: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    """Fields of policies that are others from here on, by the number of their workload."""
    slow: bool = False
    """Whether no scheduler has looked at pods yet that the last pass has placed."""
    approves: bool = False
    """Whether people approve all that is proposed."""
    ends: bool = False
    """Whether a person ends the first placement of a burst, and so holds its workload off all clusters."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Pass:
    """One pass of a chain: what went in, what was decided, and what the ledger holds afterwards."""

    inputs: PassInput
    plan: Plan
    after: Ledger
    works: Mapping[WorkloadId, Work]
    sites: Mapping[ClusterName, Site]
    begun: frozenset[str]
    """The directories of placements of which a pod has had a node."""

    def __str__(self) -> str:
        """Say what a reader needs to follow a chain: clusters, policies, demand and changes."""
        told = [f"{self.now:%H:%M:%S}"]
        told += [f"  {site}" for site in self.sites.values()]
        for work in self.works.values():
            demand = self.inputs.demands.get(work.id)
            missing = demand.missing if isinstance(demand, Demand) else "?"
            told.append(f"  {work.id}, {work.unit}, {work.gpus} GPUs, lacks {missing}: {work.policy}")
        told += [f"  has {each.path}: {each.replicas}" for each in self.before.placements.values()]
        told += [f"  {change.action} {_describe(change)}" for change in self.plan.changes]
        told += [f"  {held.workload} waits: {held.reason}: {held.message}" for held in self.plan.suppressed]
        return "\n".join(told)

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """Print it so where hypothesis reports an example."""
        printer.text(f"\n{self}")

    @property
    def now(self) -> datetime:
        """The time of the pass."""
        return self.inputs.now

    @property
    def before(self) -> Ledger:
        """The ledger that the pass has read."""
        return self.inputs.ledger

    def entries(self, work: Work) -> dict[ClusterName, int]:
        """Return the clusters that a policy names, in order, each with the number of the first entry that does."""
        entries: dict[ClusterName, int] = {}
        for number, entry in enumerate(work.policy.candidates):
            labelled = sorted(name for name, site in self.sites.items() if site.is_selected_by(entry))
            for name in [entry.name] if entry.name is not None else labelled:
                entries.setdefault(name, number)
        return entries


class World:
    """Clusters, workloads, their pods, and the ledger."""

    def __init__(self, sites: tuple[Site, ...], works: tuple[Work, ...], **fields: object) -> None:
        """Begin with nothing placed and nothing missing; `fields` are other files of the fleet."""
        self.now = NOW
        self.sites = {site.name: site for site in sites}
        self.works = works
        self.ledger = Ledger(commit=CommitId("7" * 40))
        self._missing = dict.fromkeys(range(len(works)), (0, NOW))
        self._history: Mapping[WorkloadId, tuple[object, ...]] = {}
        self._lost: Mapping[ClusterName, datetime] = {}
        self._nodes: dict[str, list[int]] = {}
        """The node of each pod that has one, by the directory of its placement."""
        self._waits: dict[str, datetime] = {}
        self._begun: set[str] = set()
        self._files: tuple[object, Enrolment] | None = None
        self._fields = fields
        self._drafted = DraftedSubsets()
        self.memory = PassMemory()
        """What passes remember of one another, which is to change no plan."""

    def change(self, step: Step) -> None:
        """Let time pass, and what follows from it: files, demand and clusters change, and pods follow the ledger."""
        self.now += step.after
        for name, fields in step.sites.items():
            self.sites[name] = replace(self.sites[name], **fields)
        for number, missing in step.missing.items():
            before, since = self._missing[number]
            self._missing[number] = missing, self.now - seconds(step.waited) if missing > before else since
        self.works = tuple(
            replace(work, policy=replace(work.policy, **step.policies.get(number, {})))
            for number, work in enumerate(self.works)
        )
        if step.approves:
            approvals = (
                Approval(path=approval_path(each), proposal=each.shown) for each in self.ledger.proposals.values()
            )
            self.ledger = replace(self.ledger, approvals={approval.path: approval for approval in approvals})
        self._follow(slow=step.slow)

    def end(self) -> None:
        """Let a person end the first placement of a burst, if there is one."""
        bursts = [each for each in self.ledger.placements.values() if not each.workload.request]
        if bursts:
            plan = plan_revert(self.inputs(), bursts[:1], by="Ada", reason="", everywhere=True)
            self.ledger = applied(self.ledger, plan, self.now)

    def inputs(self) -> PassInput:
        """Return the input of a pass at this moment. What follows from files alone is kept while they are the same."""
        enrolment = self._enrolment()
        wanted = enrolment.desired
        seen = Observed(clusters={one.cluster: one for one in self._observations()})
        demands = measure(enrolment.base, seen, self._history, self.now)
        self._history = next_history(demands)
        self._lost = lost_since(self._lost, wanted, seen, self.now)
        return PassInput(
            desired=wanted,
            ledger=self.ledger,
            observed=seen,
            demands=demands,
            now=self.now,
            reach=enrolment.reach,
            enrolment=enrolment,
            drafted=self._drafted,
            lost=self._lost,
        )

    def apply(self, inputs: PassInput, plan: Plan) -> Pass:
        """Commit a plan, and return the pass that made it."""
        begun = frozenset(self._begun)
        self.ledger = applied(self.ledger, plan, self.now)
        self._drafted = plan.drafted.next_pass()
        works = {work.id: work for work in self.works}
        return Pass(inputs=inputs, plan=plan, after=self.ledger, works=works, sites=dict(self.sites), begun=begun)

    def _enrolment(self) -> Enrolment:
        """Return the files in force with the requests of the ledger."""
        key = tuple(site.cluster for site in self.sites.values()), self.works
        if self._files is None or self._files[0] != key:
            bursts = [work for work in self.works if work.unit.is_burst]
            made = desired(
                clusters=(cluster(HOME), *key[0]),
                workloads=[work.id for work in bursts],
                policies={work.id: work.policy for work in bursts},
            )
            asked = {work.id: work.request for work in self.works if not work.unit.is_burst}
            own = Workspace(name=VLLM.workspace, primary=HOME, clusters=(HOME, *self.sites))
            made = replace(
                made,
                templates={work.id: work.template for work in bursts},
                requests=asked,
                workspaces={VLLM.workspace: own, **made.workspaces},
                **self._fields,
            )
            self._files = key, Enrolment(made, self.ledger.requests)
        self._files = self._files[0], self._files[1].updated(self._files[1].base, self.ledger.requests)
        return self._files[1]

    def _observations(self) -> Iterator[ClusterObservation]:
        lacking = tuple(
            work.lacking(*self._missing[number]) for number, work in enumerate(self.works) if work.unit.is_burst
        )
        yield ClusterObservation(cluster=HOME, observed_at=self.now, workloads=lacking)
        for site in self.sites.values():
            if site.seen:
                yield self._observe(site)

    def _observe(self, site: Site) -> ClusterObservation:
        used, bound, pending = self._used(site), dict[str, int](), dict[str, PendingPods]()
        for placement in self._on(site):
            pods, nodes = placement.replicas * placement.shape.group_size, self._nodes.get(placement.path, ())
            if nodes:
                bound[placement.name] = len(nodes)
            if len(nodes) < pods and placement.path in self._waits:
                since = self._waits[placement.path]
                waiting = PendingPods(replicas=pods - len(nodes), shape=placement.shape, since=since)
                pending[placement.name] = waiting
        free = [
            max(0, has - ours - (site.used[index] if index < len(site.used) else 0))
            for index, (has, ours) in enumerate(zip(site.nodes, used, strict=True))
        ]
        nodes = tuple(
            Node(name=f"{site.name}-{index}", free=gpus(left), allocatable=gpus(has))
            for index, (left, has) in enumerate(zip(free, site.nodes, strict=True))
        )
        return ClusterObservation(
            cluster=site.name,
            observed_at=self.now,
            pools=(Pool(name="gpu", nodes=nodes),),
            bound=bound,
            ready=dict(bound),
            pending_pods=pending,
        )

    def _on(self, site: Site) -> tuple[Placement, ...]:
        return self.ledger.placements.on(site.name).placements

    def _used(self, site: Site) -> list[int]:
        """Count the GPUs of each node that our pods use."""
        used = [0] * len(site.nodes)
        for placement in self._on(site):
            for node in self._nodes.get(placement.path, ()):
                used[node] += _gpus(placement)
        return used

    def hold_back(self, workload: WorkloadId, restraint: Restraint) -> None:
        """Let something have happened before the first pass that holds a workload back."""
        held = (*self.ledger.restraints.get(workload, ()), restraint)
        self.ledger = replace(self.ledger, restraints={**self.ledger.restraints, workload: held})

    def _follow(self, *, slow: bool) -> None:
        """Let pods follow the ledger: those of what has ended are gone, and others take the first node with room."""
        self._nodes = {path: nodes for path, nodes in self._nodes.items() if path in self.ledger.placements}
        for site in self.sites.values():
            for placement in self._on(site):
                pods = placement.replicas * placement.shape.group_size
                left = [node for node in self._nodes.get(placement.path, []) if node < len(site.nodes)]
                self._nodes[placement.path] = left[:pods]
            self._crowd(site)
            for placement in () if slow else self._on(site):
                self._bind(site, placement)

    def _crowd(self, site: Site) -> None:
        """Take pods off nodes that have become smaller than what they hold."""
        for placement in self._on(site):
            kept = list[int]()
            for node in self._nodes[placement.path]:
                used = self._used(site)[node]
                if used <= site.nodes[node]:
                    kept.append(node)
                    continue
                rest = self._nodes[placement.path]
                rest.remove(node)
                self._nodes[placement.path] = rest
            self._nodes[placement.path] = kept

    def _bind(self, site: Site, placement: Placement) -> None:
        nodes, wants = self._nodes[placement.path], placement.replicas * placement.shape.group_size
        free = self._free(site)
        while len(nodes) < wants:
            place = next((index for index, left in enumerate(free) if left >= _gpus(placement)), None)
            if place is None:
                break
            nodes.append(place)
            free[place] -= _gpus(placement)
        if nodes:
            self._begun.add(placement.path)
        if len(nodes) < wants:
            self._waits.setdefault(placement.path, self.now)
        else:
            self._waits.pop(placement.path, None)

    def _free(self, site: Site) -> list[int]:
        used = self._used(site)
        return [
            has - ours - (site.used[index] if index < len(site.used) else 0)
            for index, (has, ours) in enumerate(zip(site.nodes, used, strict=True))
        ]


def _describe(change: Change) -> str:
    left = change.after or change.before
    return "" if left is None else f"{left.workload} on {left.where}: {left.replicas} until {left.expires_at:%H:%M}"


def _gpus(placement: Placement) -> int:
    return placement.shape.requests.amounts.get(GPU, 0) // ONE


def applied(ledger: Ledger, plan: Plan, now: datetime) -> Ledger:
    """Return the ledger as the commits of a plan leave it."""
    placements, records, gone = dict(ledger.placements), dict[WorkloadId, RequestRecord](), set[WorkloadId]()
    proposals, approvals = dict(ledger.proposals), dict(ledger.approvals)
    restraints = {
        workload: [one for one in held if now < one.until or (one.move and now < one.since + timedelta(hours=1))]
        for workload, held in ledger.restraints.items()
    }
    for change in plan.changes:
        if change.action is Action.PLACE:
            assert change.placement.path not in placements, "a placement begins where one stands"
        elif change.action is not Action.HOLD and change.before is not None:
            assert placements.pop(change.before.path, None), "what is changed is not there"
        if change.after is not None:
            placements[change.after.path] = change.after
        if change.action is Action.PROPOSE:
            proposals[change.workload] = change.proposal
        elif change.action is Action.END_PROPOSAL:
            if proposals.get(change.workload) == change.proposal:
                del proposals[change.workload]
            for path in change.approvals:
                del approvals[path]
        if change.action is Action.FORGET:
            records.pop(change.workload, None)
            gone.add(change.workload)
        elif change.record is not None:
            records[change.workload] = change.record
        standing = [one for one in restraints.get(change.workload, ()) if one not in change.restraints]
        restraints[change.workload] = [*standing, *filter(None, (change.restraint,))]
    kept = {workload: tuple(held) for workload, held in restraints.items() if held}
    requests = sorted_map(ledger.requests).changed(records, gone) if records or gone else ledger.requests
    return replace(
        ledger,
        placements=Placements(placements),
        restraints=kept,
        requests=requests,
        proposals=proposals,
        approvals=approvals,
    )


def cold(inputs: PassInput) -> PassInput:
    """Return an input without anything that earlier passes have found out."""
    enrolment = Enrolment(inputs.fleet, inputs.ledger.requests)
    fresh = replace(inputs.ledger, placements=Placements(dict(inputs.ledger.placements)))
    return replace(
        inputs,
        desired=enrolment.desired,
        reach=enrolment.reach,
        drafted=DraftedSubsets(),
        enrolment=enrolment,
        ledger=fresh,
    )


def play(world: World, *steps: Step) -> list[Pass]:
    """Decide once after each step."""
    passes = []
    for step in steps:
        world.change(step)
        if step.ends:
            world.end()
        inputs = world.inputs()
        passes.append(world.apply(inputs, decide(inputs, world.memory)))
    return passes


def lone(unit: Unit, policy: BurstPolicy, *sites: Site, **fields: object) -> World:
    """Make a world with one workload, or one request."""
    name = VLLM if unit.is_burst else VLLM._replace(request=True)
    return World(sites, (Work(id=name, unit=unit, policy=policy),), **fields)
