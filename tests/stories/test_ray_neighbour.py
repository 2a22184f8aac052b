"""A RayCluster whose own autoscaler changes the number of its workers, at home and where a copy of it was lent to.

The sample is that of `golden/kinds/raycluster.yaml`, with Ray's autoscaler switched on. Home is read from pods as
KubeRay makes them, by the code that reads a watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from reconciler.adapters.helm.rendering import Helm
from reconciler.core.explain.workload import explain
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, Outcome, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.daemon.status import status
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import PLACEMENT_LABEL, Phase
from reconciler.model.workload import WorkloadRef
from reconciler.text.timestamps import format_time
from tests.builders.inputs import NOW
from tests.builders.kube_objects import GPU, Raw, node, pod
from tests.fakes.memory_repository import OURS, MemoryRepository
from tests.stories import kinds
from tests.stories.golden import Scene

SAMPLE = kinds.read(kinds.KINDS / "raycluster.yaml").template.replace("notebooks-NUMBER", "notebooks")
BURST = "burst(ml/notebooks): 1 replica on north for 4h"
NOTEBOOKS = WorkloadId(WorkspaceName("ml"), TemplateName("notebooks"))
REF = WorkloadRef(namespace="models", name="notebooks", kind="RayCluster", group="ray.io")


def template(*, replicas: str = "2", least: int = 1, most: str = "8", autoscales: bool = True) -> str:
    """Write the template, with the numbers of its group of workers."""
    written = SAMPLE.replace("replicas: 2\n", f"replicas: {replicas}\n").replace(
        "minReplicas: 1", f"minReplicas: {least}"
    )
    written = written.replace("maxReplicas: 8", f"maxReplicas: {most}")
    version = "        rayVersion: 2.52.0\n"
    assert version in written
    return written.replace(version, f"{version}        enableInTreeAutoscaling: {str(autoscales).lower()}\n")


def head(on: str, placement: str = "") -> Raw:
    return ray_pod("notebooks-head", on, placement, gpus=0, role="head")


def workers(bound: int, waiting: int, on: str, placement: str = "") -> Iterator[Raw]:
    """Make the pods of workers, those with a node first, as KubeRay does when `replicas` has been raised."""
    for number in range(bound + waiting):
        yield ray_pod(f"notebooks-gpus-worker-{number}", on if number < bound else "", placement)


def ray_pod(name: str, on: str, placement: str, *, gpus: int = 4, role: str = "worker") -> Raw:
    labels = {"ray.io/cluster": "notebooks", "ray.io/node-type": role, "ray.io/is-ray-node": "yes"}
    return pod(
        name,
        on=on,
        namespace="models",
        owner=("RayCluster", "notebooks"),
        version="ray.io/v1",
        gpus=gpus,
        labels={**labels, **({PLACEMENT_LABEL: placement} if placement else {})},
        waits="" if on else f"0/1 nodes are available: 1 Insufficient {GPU}.",
        since=format_time(NOW - timedelta(minutes=1)),
    )


@dataclass
class Fleet:
    """A daemon over a fleet with one RayCluster, and what is seen of home and of north."""

    template: str
    home: list[Raw] = field(default_factory=list)
    north: list[Raw] = field(default_factory=list)
    now: datetime = NOW

    def __post_init__(self) -> None:
        files = {"fleet.yaml": kinds.FLEET.read_bytes(), "templates/notebooks.yaml": self.template.encode()}
        self.repository = MemoryRepository(files)
        self._memory = Memory(source=SourceReader(self.repository), branch=BranchReader(self.repository))

    def run(self, after: timedelta = timedelta()) -> Outcome:
        """Run a pass, some time after the last one."""
        self.now += after
        rooms = {"home": (8, self.home), "north": (16, self.north), "east": (16, []), "south": (16, [])}
        seen = {ClusterName(name): self._seen(name, gpus, pods) for name, (gpus, pods) in rooms.items()}
        scene = Scene(moment=self.now, observed=Observed(clusters=seen))
        world = World(repository=self.repository, clusters=scene, charts=Helm(), clock=scene, author=OURS)
        return reconcile_once(world, self._memory)

    def _seen(self, name: str, gpus: int, pods: Iterable[Raw]) -> object:
        state = ClusterState(frozenset({REF} if name == "home" else ()))
        state.apply(Resource.NODES, node(f"{name}-1", gpus))
        for each in pods:
            state.apply(Resource.PODS, each)
        return state.observation(ClusterName(name), self.now)

    @property
    def subjects(self) -> list[str]:
        """The subjects of all commits, oldest first, but for that which begins the branch."""
        return self.repository.subjects()[-2::-1]

    @property
    def placement(self) -> str:
        """The name of the only placement."""
        (path,) = [path for path in self.repository.tree(under="clusters") if path.endswith(kinds.RECORD)]
        return path.split("/")[2]


def words(outcome: Outcome) -> str:
    """Return what `explain` says of the RayCluster, on one line."""
    inputs, plan = outcome.decision.inputs, outcome.plan
    return " ".join(explain(NOTEBOOKS, inputs, plan).conclusion)


@pytest.mark.parametrize("least", [0, 1, 2], ids=["no minimum", "a minimum", "as many as it begins with"])
def test_workers_that_rays_autoscaler_asks_for_are_no_second_cluster(least: int) -> None:
    """Tasks of one Ray cluster run on none of the workers of another one."""
    fleet = Fleet(template(least=least), [head("home-1"), *workers(2, 1, "home-1")])
    said = words(fleet.run())
    assert fleet.subjects == []
    assert (
        f"3 pods of it run, its minimum is {least + 1}, and 1 waits there: a copy elsewhere would be another one"
        in said
    )


def test_without_its_autoscaler_a_cluster_that_lacks_a_worker_goes_whole() -> None:
    fleet = Fleet(template(autoscales=False), [head("home-1"), *workers(1, 1, "home-1")])
    fleet.run()
    assert fleet.subjects == [BURST]


def test_a_cluster_without_its_least_workers_goes_whole() -> None:
    fleet = Fleet(template(), [head("home-1"), *workers(0, 2, "home-1")])
    fleet.run()
    assert fleet.subjects == [BURST]


def test_an_expression_lends_workers_in_a_cluster_of_their_own() -> None:
    share = '"{{ replicas }}"'
    fleet = Fleet(template(replicas=share, most=share), [head("home-1"), *workers(2, 1, "home-1")])
    fleet.run()
    assert fleet.subjects == [BURST]
    (path,) = [path for path in fleet.repository.tree(under="clusters/north") if "raycluster" in path]
    written = fleet.repository.tree(under="clusters")[path].decode()
    assert "replicas: 1\n" in written
    assert "maxReplicas: 1\n" in written


def test_pods_of_a_cluster_that_is_not_lent_are_nobodys_demand_and_take_no_room() -> None:
    other = [
        {**each, "metadata": {**each["metadata"], "name": f"other-{each['metadata']['name']}"}}
        for each in workers(0, 3, "")
    ]
    for each in other:
        each["metadata"] |= {
            "labels": {"ray.io/cluster": "other"},
            "ownerReferences": [{"kind": "RayCluster", "name": "other", "controller": True, "apiVersion": "ray.io/v1"}],
        }
    fleet = Fleet(template(), [head("home-1"), *workers(2, 0, "home-1"), *other])
    outcome = fleet.run()
    assert fleet.subjects == []
    demand = outcome.decision.inputs.demands[NOTEBOOKS]
    assert (demand.missing, demand.wanted) == (0, 1)


@pytest.mark.parametrize(
    ("bound", "waiting", "said"),
    [(2, 2, ""), (3, 0, ""), (1, 0, "2 of its 3 pods serve, its minimum is 2, and no other is seen there")],
    ids=["wants more", "has one more", "has let one go"],
)
def test_a_copy_whose_autoscaler_changes_it_stays_as_it_is(bound: int, waiting: int, said: str) -> None:
    fleet = Fleet(template(), [head("home-1"), *workers(0, 2, "home-1")])
    fleet.run()
    placement = fleet.placement
    fleet.north = [head("north-1", placement), *workers(2, 0, "north-1", placement)]
    for _ in range(3):
        fleet.run(timedelta(minutes=1))
    fleet.north = [head("north-1", placement), *workers(bound, waiting, "north-1", placement)]
    for _ in range(30):
        outcome = fleet.run(timedelta(minutes=5))
    assert fleet.subjects == [BURST]
    (row,) = status(outcome.decision).placements
    assert row.phase is Phase.RUNNING
    assert row.message == said
