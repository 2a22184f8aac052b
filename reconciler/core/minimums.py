"""How few pods of an object have to be there before any of them runs: its minimum, role by role.

Volcano's `minAvailable` of a job and of its tasks, `minAvailable` of Grove's cliques and of their scaling groups, the
`minAvailable` and `minReplicas` of Kubeflow's jobs (docs/kinds.md, "A gang with a minimum"). Where the minimum of the
whole is more than those of its roles come to, the scheduler takes any pods for the rest; here they are those that take
most of a node, so that what is said to have room has it whichever they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.podsof import groups, minimum
from reconciler.model.workload import Json
from reconciler.model.workloadkind import WorkloadKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRole:
    """The pods of one template: how many there are, the GPUs of each, and how many the object wants at `least`."""

    likeness: Hashable
    gpus: int
    pods: int
    least: int | None


def starting(roles: Sequence[PodRole], manifest: Mapping[str, Json], kind: WorkloadKind) -> Mapping[Hashable, int]:
    """Return how many pods of each likeness have to be there at once; nothing where all have to be.

    A role has its own minimum. Without one it is there with all of its pods, or with one for each group where the
    object has a minimum as a whole: nothing trains without its master.
    """
    number, whole = groups(manifest, kind), minimum(manifest, kind)
    if not number or (whole is None and all(role.least is None for role in roles)):
        return {}
    found = Counter[Hashable]()
    spare: list[tuple[int, PodRole]] = []
    for role in roles:
        unsaid = role.pods if whole is None else min(role.pods, number)
        least = unsaid if role.least is None else min(role.pods, role.least)
        found[role.likeness] += least
        spare.append((role.pods - least, role))
    missing = number * (whole or 0) - found.total()
    for left, role in sorted(spare, key=lambda one: -one[1].gpus):
        if missing > 0:
            found[role.likeness] += min(left, missing)
            missing -= min(left, missing)
    return found
