"""The pods of subsets that passes have rendered in advance, as a value that one pass hands to the next.

`core.fleet.spread.drafts` renders them, out of a bound for each workspace and pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self, TypeAlias

from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.policy import Desired

PatchedTemplate: TypeAlias = tuple[WorkloadId, tuple[int, ...]]
"""A workload, and which of its template's patches are for a cluster."""

DraftKey: TypeAlias = tuple[PatchedTemplate, str, tuple[Requirement, ...], ClusterName | None]
"""Beside it a subset, what it requires of nodes, and the cluster if the template reads it: else all share a draft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchShapes:
    """The shape of a template's pods in three states of injection."""

    own: ReplicaShape
    """As the template states it."""
    injected: ReplicaShape
    """With all that the subset injects but its patch."""
    patched: ReplicaShape
    """With the patch as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetObjects:
    """The prerequisites and shapes of the objects of a subset."""

    needed: tuple[Prerequisite, ...]
    """The objects that a cluster must have first."""
    shapes: PatchShapes | None
    """None where they are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateTraits:
    """What is known of a template before it is rendered."""

    reads_cluster: bool
    reads_placement: bool
    steps: int
    """What a draft takes beside its expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetDraft:
    """A rendered subset."""

    objects: SubsetObjects
    moment: datetime | None
    """None where it is the same at every moment."""
    steps: int
    """What it has taken of the bound of its workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedSubsets:
    """The drafts of all passes so far, and what the last one has spent on them."""

    desired: Desired | None = field(default=None, compare=False)
    """The fleet that they are rendered from; None before the first pass."""
    traits: Mapping[PatchedTemplate, TemplateTraits] = field(default_factory=dict)
    drafts: Mapping[DraftKey, SubsetDraft] = field(default_factory=dict)
    waiting: Mapping[WorkspaceName, Mapping[DraftKey, None]] = field(default_factory=dict)
    """The drafts that take turns in being replaced, the first first."""
    due: Mapping[WorkspaceName, Collection[DraftKey]] = field(default_factory=dict)
    """Those of them whose turn it is in this pass, of each workspace that has asked for such drafts."""
    asked: Mapping[WorkspaceName, Mapping[DraftKey, None]] = field(default_factory=dict)
    """Those that this pass has asked for, in that order."""
    replaced: Collection[WorkspaceName] = ()
    """The workspaces of which this pass has replaced drafts."""
    spent: Mapping[WorkspaceName, int] = field(default_factory=dict)
    """What the pass has spent of the bound of each workspace, in microseconds."""
    has_untried: bool = False
    """Whether pods that the pass asked for are untried, so that a later pass may decide otherwise."""

    def next_pass(self) -> Self:
        """Return the same drafts for another pass, which has the whole bound."""
        waiting = {**self.waiting, **{workspace: self._following(workspace) for workspace in self.asked}}
        return replace(self, waiting=waiting, due={}, asked={}, replaced=(), spent={}, has_untried=False)

    def _following(self, workspace: WorkspaceName) -> Mapping[DraftKey, None]:
        """Return the drafts of a workspace that take turns in the next pass.

        Of those that were due, only what this pass has asked for. One that has replaced none, as a preview, which asks
        for few, takes no turn from the others.
        """
        lapsed = self.due[workspace] if workspace in self.replaced else ()
        before = {key: None for key in self.waiting.get(workspace, {}) if key not in lapsed}
        return {**before, **self.asked[workspace]}
