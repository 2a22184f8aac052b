"""The output branch as values: what stands, what holds back, and what people did there by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.errors import Problem
from reconciler.model.ids import BlobId, ClusterName, CommitId, WorkloadId
from reconciler.model.placement import Placement, Restraint
from reconciler.model.placements import Placements
from reconciler.model.request import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A placement whose files a person changed on the output branch since the daemon last wrote there.

    `files` are all of its files as the daemon left them, by path. `removed` tells that placement.yaml is gone, which is
    a revert to respect; otherwise it is an edit to put right.
    """

    placement: Placement
    removed: bool
    files: Mapping[str, BlobId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The output branch as values, at one commit (None: the branch does not exist yet).

    `requests` are what people asked for, by workload, until each is forgotten. `placements` are keyed by directory
    (``clusters/worker-2/vllm-7f3a90c1``). `restraints` hold what was written, lapsed ones too. What cannot be read is
    told in `problems` and left as it is; the workloads of `blocked` are the ones it is about, and they get nothing new
    until a person mends it. `anchored` are the clusters where the directory that Flux follows is kept alive.
    """

    commit: CommitId | None
    placements: Placements = field(default_factory=Placements)
    requests: Mapping[WorkloadId, RequestRecord] = field(default_factory=dict)
    restraints: Mapping[WorkloadId, tuple[Restraint, ...]] = field(default_factory=dict)
    drifted: tuple[Drift, ...] = ()
    problems: tuple[Problem, ...] = ()
    blocked: frozenset[WorkloadId] = frozenset()
    anchored: frozenset[ClusterName] = frozenset()
