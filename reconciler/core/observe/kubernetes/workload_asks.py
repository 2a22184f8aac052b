"""Which of the autoscalers and queues of a cluster ask for replicas of a workload, and for how many.

They may name the workload, something that it makes, as KServe's autoscaler the Deployment of a predictor, or something
that has made it. What asks of an object that is gone, or is being deleted, asks for nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.observe.kubernetes.controllers import ControllerRecord
from reconciler.core.observe.kubernetes.custom_workloads import CustomWorkloadRecord
from reconciler.core.observe.kubernetes.pod_groups import group_of
from reconciler.core.observe.kubernetes.pods import PodRecord
from reconciler.core.observe.kubernetes.replica_asks import AskRecord
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.core.observe.kubernetes.wanted_pods import ObjectRecord, ObjectTree
from reconciler.model.signal import ReplicaRequest


class WorkloadAsks:
    """The asks of a cluster, by the objects that they reach."""

    def __init__(
        self,
        objects: Mapping[Owner, ObjectRecord],
        tree: ObjectTree,
        asks: Mapping[Owner, Iterable[AskRecord]],
    ) -> None:
        self._objects = objects
        self._tree = tree
        self._asks = asks

    @cached_property
    def targets(self) -> Mapping[Owner, Sequence[AskRecord]]:
        """What asks of each object that there is, as far as anybody can know."""
        targets: dict[Owner, Sequence[AskRecord]] = {}
        for target, records in self._asks.items():
            record = self._objects.get(target)
            uid = "" if record is None else record.identity.uid
            # What names an object by its uid means no other one of its name.
            meant = [each for each in records if not uid or each.owner_uid in {"", uid}]
            if meant and not self._tree.is_leaving(target):
                targets[target] = meant
        return targets

    def of(self, root: Owner, followed: Container[Owner]) -> Mapping[Owner, Sequence[AskRecord]]:
        """Return what asks for replicas of an object, by the objects that it names.

        Of several objects that it makes those ask whose pods have the most GPUs: a router is no replica of what it
        serves. An object above it that is `followed` itself is told of its asks itself.
        """
        reaching = self._reaching.get(root, ()) if self.targets else ()
        above = set(self._tree.above(root)) if reaching else set[Owner]()
        most = max(map(self._gpus, self._tree.made(root)), default=0) if reaching else 0
        return {
            target: self.targets[target]
            for target in reaching
            if target == root or (target not in followed if target in above else self._gpus(target) >= most)
        }

    def replicas(self, root: Owner, asking: Mapping[Owner, Sequence[AskRecord]]) -> Iterator[ReplicaRequest]:
        """Yield what is asked for of an object, in its own replicas."""
        for target, records in asking.items():
            pods = self._tree.staying_below(target)
            for record in records:
                ask = record.ask(len(pods), self._measured(target, pods, record.current))
                if ask is not None:
                    gangs = 0 if target == root else self._gangs(root, pods)
                    have = record.current or len(pods)
                    yield replace(ask, replicas=-(-ask.replicas * gangs // have)) if gangs and have else ask

    @cached_property
    def _reaching(self) -> Mapping[Owner, Sequence[Owner]]:
        """The targets that each object has to do with: itself, and those above and below it."""
        reaching: dict[Owner, list[Owner]] = {}
        for target in self.targets:
            related = dict.fromkeys((target, *self._tree.below(target), *self._tree.above(target)))
            # What it makes may belong to a workload by a label alone, and so may its pods.
            made = [owner for each in self._tree.owned.get(target, ()) for owner in self._tree.above(each)]
            made += [owner for pod in self._tree.pods_below(target)[:1] for owner in pod.owners]
            for each in dict.fromkeys((*related, *made)):
                reaching.setdefault(each, []).append(target)
        return reaching

    def _gpus(self, owner: Owner) -> int:
        """Return the most GPUs that a pod of an object asks for, by the templates of what it makes."""
        records = (self._objects.get(each) for each in self._tree.below(owner))
        shapes = [record.shape for record in records if record is not None and record.shape is not None]
        return max(map(gpus_of_pod, shapes), default=0)

    def _measured(self, target: Owner, pods: Sequence[PodRecord], current: int) -> int:
        """Count the ready replicas that an autoscaler of an object measures: of gangs by their leaders.

        Several pods may be one of its `current` replicas, or others stand beside them, as the master of a job whose
        workers are scaled.
        """
        leaders = [pod for pod in pods if any(group.leads and group.owner == target for group in pod.groups)]
        ready = sum(1 for pod in leaders or pods if pod.ready)
        if leaders or isinstance(self._objects.get(target), ControllerRecord) or not 0 < current < len(pods):
            return ready
        return ready * current // len(pods)

    def _gangs(self, root: Owner, pods: Iterable[PodRecord]) -> int:
        """Count the gangs of an object that these pods are of; 0 where its pods are in none.

        What is asked for of a part of them is converted into gangs, each of which has as many of the part.
        """
        record = self._objects.get(root)
        if not isinstance(record, CustomWorkloadRecord):
            return 0
        return len({group_of(root, pod.groups) for pod in pods} - {""}) or record.together
