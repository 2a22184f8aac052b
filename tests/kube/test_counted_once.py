"""A replica of ours takes room once: while it is in flight, or once it is seen on a node, and never both or neither."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.model.capacity import CLASS_PREFIX, DeviceOption, DeviceRequest, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.units import ONE
from tests.builders.inputs import NOW, inputs, ledger, placement, shape, short
from tests.builders.kube_objects import (
    DRIVER,
    GPU,
    NO_GPU,
    SINCE,
    Raw,
    claim,
    device,
    device_class,
    node,
    pod,
    resource_slice,
)

THERE = ClusterName("worker-2")
NODES, EACH, DEVICES = ("n1", "n2"), 20, 12
"""More than all replicas and strangers together take, so that every one of them shows."""

CLAIMING = ReplicaShape(
    requests=shape().requests, devices=(DeviceRequest(options=(DeviceOption(device_class=DRIVER),)),)
)


@dataclass
class Rollout:
    """Pods of a placement and of others as the API server holds them, and a state that is told of each change."""

    replicas: int
    pods: dict[str, Raw] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    state: ClusterState = field(default_factory=ClusterState)

    def __post_init__(self) -> None:
        self.placement = placement(THERE, self.replicas, created=NOW - timedelta(seconds=10))

    def node(self, name: str, what: str) -> None:
        """Open a node, close it in one of the ways in which nodes close, or take it away."""
        if what == "gone":
            self.state.remove(Resource.NODES, name)
        else:
            fields = {"ready": what != "not ready", "unschedulable": what == "cordoned"}
            self.state.apply(Resource.NODES, node(name, EACH, **fields))
        (self.closed.discard if what == "open" else self.closed.add)(name)

    def step(self, name: str, what: str, on: str) -> None:
        """Let something happen to a pod, if it can; one may be made and bound before we hear of it."""
        there = self.pods.get(name)
        if there is None and what in {"create", "bind"}:
            there = pod(name, waits=NO_GPU, labels=self._labels(name))
            self._tell(name, there)
        if there is None:
            return
        if what == "bind" and not there["spec"].get("nodeName") and "deletionTimestamp" not in there["metadata"]:
            self._tell(name, pod(name, on, labels=self._labels(name), phase="Pending"))
        elif what == "ready" and there["spec"].get("nodeName"):
            self._tell(name, {**there, "status": {"phase": "Running", "conditions": [{"type": "Ready"}]}})
        elif what == "restart" and there["spec"].get("nodeName"):
            self._tell(name, {**there, "status": {"phase": "Running", "containerStatuses": [{"restartCount": 3}]}})
        elif what == "terminate":
            self._tell(name, {**there, "metadata": {**there["metadata"], "deletionTimestamp": SINCE}})
        elif what == "delete":
            del self.pods[name]
            self.state.remove(Resource.PODS, f"demo/{name}")

    def free(self) -> int:
        """Count the GPUs that deciding would hand out."""
        finder = self._finder()
        return int(finder.capacity.room(THERE, None).free(shape()).amounts[GPU] // ONE)

    def expected(self) -> int:
        """Count them from what there is: a pod on an open node takes one, and so does a replica without a node.

        So does a pod of ours that waits beside those that run, as in a rolling update: it may take its room any moment.
        """
        bound = [one for one in self.pods.values() if one["spec"].get("nodeName")]
        taken = sum(one["spec"]["nodeName"] not in self.closed for one in bound)
        ours = sum(bool(one["metadata"]["labels"]) and "deletionTimestamp" not in one["metadata"] for one in bound)
        waiting = [one for one in self.pods.values() if one["metadata"]["labels"] and one not in bound]
        coming = sum("deletionTimestamp" not in one["metadata"] for one in waiting)
        return EACH * len(set(NODES) - self.closed) - taken - max(0, self.replicas - ours, min(coming, self.replicas))

    def _finder(self) -> CandidateFinder:
        seen = self.state.observation(THERE, NOW)
        now = inputs(short(1), seen, there=ledger(self.placement))
        return CandidateFinder(now, WorkingPlan(now))

    def _labels(self, name: str) -> dict[str, str]:
        return {"overspill.dev/placement": self.placement.name} if name.startswith("ours") else {}

    def _tell(self, name: str, raw: Raw) -> None:
        self.pods[name] = raw
        self.state.apply(Resource.PODS, raw)


STEPS = st.one_of(
    st.tuples(
        st.sampled_from(["ours-1", "ours-2", "ours-3", "other"]),
        st.sampled_from(["create", "bind", "bind", "ready", "restart", "terminate", "delete"]),
        st.sampled_from(NODES),
    ),
    st.tuples(st.sampled_from(NODES), st.sampled_from(["open", "not ready", "cordoned", "gone"]), st.none()),
)


@given(st.integers(1, 4), st.lists(STEPS, max_size=40))
def test_each_replica_takes_room_exactly_once_at_every_moment_of_a_rollout(replicas, steps) -> None:
    rollout = Rollout(replicas)
    for name in NODES:
        rollout.node(name, "open")
    for name, what, on in steps:
        if on is None:
            rollout.node(name, what)
        else:
            rollout.step(name, what, on)
        if len(rollout.closed) < len(NODES):
            assert rollout.free() == rollout.expected()


@given(st.integers(1, 4), st.data())
def test_device_of_a_replica_is_never_free_whichever_of_two_watches_is_ahead(replicas, data) -> None:
    """Claims and pods are told by different watches. The scheduler allocates a claim before it binds the pod."""
    made = ClusterState()
    ours = placement(THERE, replicas, created=NOW - timedelta(seconds=10), shape=CLAIMING)
    made.apply(Resource.NODES, node("n1", EACH))
    made.apply(Resource.SLICES, resource_slice("s1", [device(f"gpu-{index}") for index in range(DEVICES)], "n1"))
    made.apply(Resource.CLASSES, device_class())
    claims = [claim(f"c-{index}", f"gpu-{index}", pool="n1") for index in range(replicas)]
    bound = [_bound(index, ours.name) for index in range(replicas)]

    def left() -> int:
        now = inputs(short(1), made.observation(THERE, NOW), there=ledger(ours))
        room = CandidateFinder(now, WorkingPlan(now)).capacity.room(THERE, None)
        return int(room.free(CLAIMING).amounts[f"{CLASS_PREFIX}{DRIVER}"] // ONE)

    assert left() == DEVICES - replicas
    while claims or bound:
        of_claims = bool(claims) and (not bound or data.draw(st.booleans()))
        made.apply(Resource.CLAIMS if of_claims else Resource.PODS, (claims if of_claims else bound).pop(0))
        assert left() <= DEVICES - replicas
    assert left() == DEVICES - replicas


def _bound(index: int, name: str) -> Raw:
    claimed = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    raw = pod(f"p-{index}", "n1", labels={"overspill.dev/placement": name}, resourceClaims=claimed)
    raw["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"c-{index}"}]
    return raw
