"""The approval of bursts by people: the rule of a policy, and the proposal that waits for a yes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from reconciler.model.ids import ClusterName, WorkloadId

BRANCHES = "overspill/proposals/"
"""The beginning of the names of branches that propose a burst."""

_PAGE = re.compile(r"https?://[^\s/?#]+(?:[/?#]\S*)?")


def is_page(address: str) -> bool:
    """Return whether an address is one that a browser opens as a page: of a pull request, it becomes a link."""
    return _PAGE.fullmatch(address) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedPlacement:
    """Replicas that a proposal would bring to one cluster."""

    cluster: ClusterName
    subset: str = ""
    """The WorkloadSpread subset that they are for; empty without one."""
    replicas: int
    """Replicas that come, beside those that are there."""
    beside: int = 0
    """Replicas of the workload that its placement there has already."""
    gpus: int
    """GPUs of the replicas that come."""
    price_per_gpu_hour: float | None = None
    """In dollars; None where unknown."""
    duration: timedelta
    """From its beginning to its end, renewals left out."""

    @property
    def where(self) -> str:
        """The cluster and the subset."""
        return f"{self.cluster}/{self.subset}" if self.subset else self.cluster

    @property
    def dollars_per_hour(self) -> float | None:
        """The price of all its GPUs; None where unknown."""
        return None if self.price_per_gpu_hour is None else self.price_per_gpu_hour * self.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstProposal:
    """A burst that waits for a person's yes."""

    workload: WorkloadId
    policy: str
    proposed_at: datetime
    until: datetime
    """When it lapses."""
    reason: str
    """Why the burst is wanted, in a sentence."""
    renewals: str
    """How long the burst may last with its renewals, in a sentence."""
    placements: tuple[ProposedPlacement, ...]
    pull_request: str = ""
    """The URL of its pull request; empty before there is one."""
    foreign: str = ""
    """What somebody put on its branch and was taken off, with its commit, in a clause; empty for nothing."""

    @property
    def shown(self) -> Self:
        """What was shown: all of it but the address of its pull request, and what became of its branch."""
        return replace(self, pull_request="", foreign="")

    @property
    def replicas(self) -> int:
        """Replicas that it would bring."""
        return sum(placement.replicas for placement in self.placements)

    @property
    def gpus(self) -> int:
        """GPUs that it would bring."""
        return sum(placement.gpus for placement in self.placements)

    @property
    def dollars_per_hour(self) -> float | None:
        """What it would cost an hour; None where the price of a part is unknown."""
        prices = [placement.dollars_per_hour for placement in self.placements]
        return None if None in prices else sum(price for price in prices if price is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A yes on the output branch: the proposal as it was shown."""

    path: str
    """The path of its file."""
    proposal: BurstProposal


class ProposalEnd(StrEnum):
    """How a proposal ends."""

    APPROVED = "approved"
    """It is placed."""
    NOT_PLACED = "not-placed"
    """It was approved, and cannot be placed as it was shown."""
    REFUSED = "refused"
    TIMED_OUT = "timed-out"
    WITHDRAWN = "withdrawn"
    REPLACED = "replaced"
    TOO_LATE = "too-late"
    """An approval of a proposal that had ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """Which bursts of a policy wait for an approval: all of them, or those to which any of its bounds applies."""

    above_gpus: int | None = None
    """More GPUs of one workload outside its primary."""
    above_dollars_per_hour: float | None = None
    """More dollars an hour of one workload outside its primary. An unknown price counts as more."""
    clusters: tuple[ClusterName, ...] = field(default=())
    """Bursts to these clusters."""
    stands_for: timedelta = timedelta(hours=1)
    """How long a proposal stands."""

    @property
    def always(self) -> bool:
        """Whether every burst waits for an approval."""
        return self.above_gpus is None and self.above_dollars_per_hour is None and not self.clusters


class PullRequestState(StrEnum):
    """The state of a pull request on its host."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request as its host has it."""

    number: int
    url: str
    state: PullRequestState
    closed_by: str = ""
    """Who closed it; empty where the host does not say."""
