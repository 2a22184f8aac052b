"""Watched objects that cannot be read: each keeps its last good version, and the others of its stream are read on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from reconciler.bulkhead import Seam, attempt
from reconciler.core.observe.kubernetes.resources import Watched
from reconciler.core.workloads.watch import ChangeEffect, key_of
from reconciler.errors import Bug, Problem, Severity
from reconciler.model.workload import Json

_MOST = 20
"""Bugs that are kept for one cluster or control plane; beyond it objects are left unread all the same."""


class UnreadableObjects:
    """The objects of one cluster or control plane that cannot be read, by resource and key."""

    def __init__(self) -> None:
        """Begin without any."""
        self._bugs: dict[tuple[Watched, str], Bug] = {}

    def apply(self, resource: Watched, raw: Json, steps: Iterable[Callable[[], ChangeEffect]]) -> ChangeEffect:
        """Apply an object behind the bulkhead, each step by itself; a step that cannot read it changes nothing."""
        key, bug, effect = key_of(raw), None, ChangeEffect.NOTHING
        for step in steps:
            outcome = attempt(Seam.WATCHED_OBJECT, f"{resource.full_name} {key}", step)
            if isinstance(outcome, Bug):
                bug = bug or outcome
            else:
                effect = max(effect, outcome)
        if bug is None:
            self.forget(resource, key)
        elif len(self._bugs) < _MOST:
            self._bugs[resource, key] = bug
        return effect

    def forget(self, resource: Watched, key: str) -> None:
        """Forget an object that is gone, or that can be read again."""
        if self._bugs:
            self._bugs.pop((resource, key), None)

    def retain(self, resource: Watched, keys: Collection[str]) -> None:
        """Forget all objects of a resource but these."""
        for other, key in list(self._bugs):
            if other is resource and key not in keys:
                del self._bugs[other, key]

    def problems(self, place: str) -> Iterator[Problem]:
        """Report each of them as a problem of a place, such as ``cluster worker-1``."""
        for bug in list(self._bugs.values()):
            yield bug.problem(f"{place}: {bug.item}", severity=Severity.WARNING)
