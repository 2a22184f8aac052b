"""Follows proposals to the host: a branch and a pull request for each that waits, and the answers of the host back.

Level by level: what stands in the ledger gets its branch and its pull request, what stands no more loses them. So a
daemon that was killed between any two steps, and a second daemon, find what is there and do the rest. Nothing is
decided here: what the host says becomes an order, which a pass carries out and records like those of API callers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from reconciler.core.commits.proposals import proposal_commit, pull_request_text
from reconciler.core.decide.state.order import Order, Ruling
from reconciler.core.ledger.proposal_record import approvals_of, proposal_branch, proposal_id
from reconciler.daemon.branch import BranchReader
from reconciler.errors import Conflict, InvalidInput
from reconciler.model.approval import BRANCHES, BurstProposal, PullRequest, PullRequestState, is_page
from reconciler.model.ids import CommitId
from reconciler.model.request import Verb
from reconciler.model.tree import Identity, Tips
from reconciler.ports import Clock, ProposalBranches, PullRequests
from reconciler.text.findings import shortened

log = structlog.get_logger()

_NO_MAIL = "users.noreply.overspill.dev"
"""Domain of reviewers, whose addresses hosts do not tell; it delivers no mail."""
_ENDED = "This burst is not proposed any more; the log of the branch says why."


@dataclass(slots=True, kw_only=True)
class ProposalDesk:
    """Makes, watches and removes the branches and pull requests of proposals. Of one thread."""

    repository: ProposalBranches
    branch: BranchReader
    pull_requests: PullRequests
    clock: Clock
    author: Identity
    output_branch: str
    _said: dict[str, str] = field(default_factory=dict)
    """What was logged last of each proposal, so that a lasting trouble is logged once."""

    def close(self) -> None:
        """Close the repository and the connections to the host."""
        self.pull_requests.shut()
        self.repository.close()

    def tend(self) -> tuple[Order, ...]:
        """Bring branches and pull requests to where the ledger is, and return what the host says as orders.

        Raises Transient where the remote or the host does not answer.
        """
        # Listed before the ledger is read: a branch of another daemon is older than the ledger then, and so is in it.
        heads = self.repository.heads(BRANCHES) if self.pull_requests.available() else None
        if heads is None:
            return ()
        tips = self.repository.fetch()
        ledger = self.branch.ledger(tips.output)
        waiting = {
            proposal_branch(proposal): proposal
            for proposal in ledger.proposals.values()
            if not approvals_of(ledger, proposal) and proposal.until > self.clock.now()
        }
        standing = {proposal_branch(proposal) for proposal in ledger.proposals.values()}
        for name in sorted(heads.keys() - standing):
            self._contained(name, partial(self._remove, name, heads[name]))
        steps = {name: partial(self._follow, name, proposal, heads, tips) for name, proposal in waiting.items()}
        orders = (self._contained(name, step) for name, step in sorted(steps.items()))
        return tuple(order for order in orders if order is not None)

    def _contained(self, name: str, step: Callable[[], Order | None]) -> Order | None:
        """Take one step; a refusal of the host costs that proposal alone, and is logged once."""
        try:
            done = step()
        except (InvalidInput, Conflict) as error:
            if self._said.get(name) != str(error):
                self._said[name] = str(error)
                log.warning("proposal", line=str(error))
            return None
        self._said.pop(name, None)
        return done

    def _follow(self, name: str, proposal: BurstProposal, heads: Mapping[str, CommitId], tips: Tips) -> Order | None:
        """Give a proposal what it lacks of a branch and a pull request, or return what became of them."""
        known = proposal.pull_request
        if name not in heads:
            # Another daemon may have made it since: the ledger that names its pull request is newer than that list.
            heads = self.repository.heads(BRANCHES)
        request = self.pull_requests.find(name, known=known) if known or name in heads else None
        # 1. It is answered: a merge is on the output branch, and the next fetch brings it.
        if request is not None and request.state is PullRequestState.MERGED:
            return None
        if request is not None and request.state is PullRequestState.CLOSED:
            return _order(Verb.REJECT, proposal, _reviewer(request), reason=f"{request.url} was closed")
        # 2. A person removed its branch.
        if known and name not in heads:
            return _order(Verb.REJECT, proposal, _reviewer(request), reason=f"its branch {name} was removed")
        # 3. It lacks its branch.
        if name not in heads and tips.output is not None:
            (commit,) = self.repository.write(tips.output, [proposal_commit(proposal, self.author, self.clock.now())])
            self.repository.move_head(name, old=None, new=commit)
        # 4. It lacks its pull request.
        if request is None:
            title, body = pull_request_text(proposal)
            base = self.output_branch.removeprefix("refs/heads/")
            request = self.pull_requests.open(name, base, title=title, body=body)
        # 5. The ledger lacks its address.
        if request.url != known:
            if not is_page(request.url):
                raise InvalidInput(
                    f"the host says that the pull request of {name} is at {shortened(request.url)!r}, which is no"
                    " address of a page (try setting the root URL of the host)"
                )
            return _order(Verb.ANNOTATE, proposal, self.author, pull_request=request.url)
        return None

    def _remove(self, name: str, commit: CommitId) -> Order | None:
        """Close the pull request of what is proposed no more, and remove its branch."""
        request: PullRequest | None = self.pull_requests.find(name)
        if request is not None and request.state is PullRequestState.OPEN:
            self.pull_requests.close(request, comment=_ENDED)
        self.repository.move_head(name, old=commit, new=None)
        return None


def _reviewer(request: PullRequest | None) -> Identity:
    """Return who closed a pull request, as the author of a commit; a host may not say."""
    login = request.closed_by if request is not None else ""
    local = re.sub(r"[^A-Za-z0-9.-]+", "-", login).strip("-.")
    return Identity(name=local or "a reviewer", email=f"{local or 'reviewer'}@{_NO_MAIL}")


def _order(verb: Verb, proposal: BurstProposal, author: Identity, *, reason: str = "", pull_request: str = "") -> Order:
    workload = proposal.workload
    return Order(
        number=0,
        verb=verb,
        name=workload.name,
        workspace=workload.workspace,
        author=author,
        within=frozenset((workload.workspace,)),
        ruling=Ruling(workload=workload, proposal=proposal_id(proposal), reason=reason, pull_request=pull_request),
    )


def numbered(orders: Sequence[Order]) -> tuple[Order, ...]:
    """Give orders the numbers that a pass of their own answers them by."""
    return tuple(replace(order, number=number) for number, order in enumerate(orders, start=1))
