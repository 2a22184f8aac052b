"""The desk that proposes bursts as pull requests."""

from __future__ import annotations

from reconciler.adapters.clock import SystemClock
from reconciler.app.world import PATIENCE, committer, credentials, open_repository
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.proposals.desk import ProposalDesk
from reconciler.settings import Settings


def proposal_desk(settings: Settings) -> ProposalDesk:
    """Open a desk with a mirror of its own, which its user closes."""
    from reconciler.adapters.pull_requests import HostPullRequests  # noqa: PLC0415 - where bursts are approved alone

    repository = open_repository(settings, cache="proposals")
    return ProposalDesk(
        repository=repository,
        branch=BranchReader(repository),
        pull_requests=HostPullRequests(settings.repo, credentials(settings), timeout=PATIENCE.total_seconds()),
        clock=SystemClock(),
        author=committer(settings),
        output_branch=settings.output_branch,
    )
