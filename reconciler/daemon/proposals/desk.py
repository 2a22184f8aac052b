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

from reconciler.bulkhead import Seam, attempt
from reconciler.core.commits.proposals import proposal_commit, pull_request_text
from reconciler.core.decide.state.order import Order, Ruling
from reconciler.core.ledger.proposal_record import (
    approval_path,
    approvals_of,
    proposal_branch,
    proposal_id,
    write_approval,
)
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.bug_log import BUGS
from reconciler.errors import Bug, Conflict, InvalidInput, Transient
from reconciler.model.approval import BRANCHES, BurstProposal, PullRequest, PullRequestState, is_page
from reconciler.model.ids import CommitId
from reconciler.model.request import Verb
from reconciler.model.tree import FileChange, Identity, Tips, blob_of
from reconciler.ports import Clock, ProposalBranches, PullRequests
from reconciler.text.findings import shortened
from reconciler.text.markdown import code

log = structlog.get_logger()

_NO_MAIL = "users.noreply.overspill.dev"
"""Domain of reviewers, whose addresses hosts do not tell; it delivers no mail."""
_NEAR, _FAR = 50, 2000
"""Commits of the output branch in which the one that a proposal was made on is looked for, nearby and at all."""
_PATIENT = 2
"""Proposals that are asked about while the host answers nothing."""
_FEW = 10
"""Foreign files that are named."""
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
    _judged: dict[str, tuple[CommitId, tuple[str, ...]]] = field(default_factory=dict)
    """The last commit of each branch that was looked into, and what is foreign about it; nothing for our own."""

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
        standing = {proposal_branch(proposal): proposal for proposal in ledger.proposals.values()}
        steps = {name: partial(self._remove, name, heads[name]) for name in sorted(heads.keys() - standing.keys())}
        steps |= {name: partial(self._follow, name, waiting[name], heads, tips) for name in sorted(waiting)}
        orders: list[Order] = []
        silent = 0
        for done, (name, step) in enumerate(steps.items(), start=1):
            order = self._contained(name, step)
            silent += isinstance(order, Transient)
            if isinstance(order, Transient) and order.pause is not None:
                raise order  # each call prolongs a rate limit
            if isinstance(order, Transient) and silent == done and (silent == _PATIENT or done == len(steps)):
                raise order  # the host answers nothing at all
            if isinstance(order, Order):
                orders.append(order)
        self._judged = {name: judged for name, judged in self._judged.items() if name in standing}
        return tuple(orders)

    def _contained(self, name: str, step: Callable[[], Order | None]) -> Order | Transient | None:
        """Take one step; what the host refuses, cannot answer or answers as nobody foresaw costs that proposal alone.

        It is logged once.
        """
        try:
            done = attempt(Seam.PROPOSAL, name, step)
        except (InvalidInput, Conflict, Transient) as error:
            self._log(name, str(error))
            return error if isinstance(error, Transient) else None
        if isinstance(done, Bug):
            BUGS.note(done)
            return None
        if not self._judged.get(name, (None, ()))[1]:
            self._said.pop(name, None)
        return done

    def _log(self, name: str, line: str) -> None:
        if self._said.get(name) != line:
            self._said[name] = line
            log.warning("proposal", line=line)

    def _follow(self, name: str, proposal: BurstProposal, heads: Mapping[str, CommitId], tips: Tips) -> Order | None:
        """Give a proposal what it lacks of a branch and a pull request, or return what became of them."""
        known = proposal.pull_request
        if name not in heads:
            # Another daemon may have made it since: the ledger that names its pull request is newer than that list.
            heads = self.repository.heads(BRANCHES)
        request = self.pull_requests.find(name, known=known) if known or name in heads else None
        # 1. It is answered: a merge is on the output branch, and the next fetch brings it.
        if request is not None and request.state is PullRequestState.MERGED:
            if name in heads and (foreign := self._foreign(name, proposal, heads[name], tips)):
                self._log(name, f"{request.url} was merged with {_listed(foreign)} that Overspill did not propose")
            return None
        if request is not None and request.state is PullRequestState.CLOSED:
            return _order(Verb.REJECT, proposal, _reviewer(request), reason=f"{request.url} was closed")
        # 2. A person removed its branch.
        if known and name not in heads:
            return _order(Verb.REJECT, proposal, _reviewer(request), reason=f"its branch {name} was removed")
        told = ""
        # 3. It lacks its branch, or somebody else has put something on it: what is merged is what was proposed alone.
        foreign = self._foreign(name, proposal, heads[name], tips) if name in heads else ()
        if (name not in heads or foreign) and tips.output is not None:
            (commit,) = self.repository.write(tips.output, [proposal_commit(proposal, self.author, self.clock.now())])
            self.repository.move_head(name, old=heads.get(name), new=commit)
            self._judged[name] = commit, ()
        if foreign:
            self._tell(name, heads[name], request, foreign)
            told = f"commit {heads[name][:12]} put {_listed(foreign)} on its branch, which was taken off"
        # 4. It lacks its pull request.
        if request is None:
            title, body = pull_request_text(proposal)
            base = self.output_branch.removeprefix("refs/heads/")
            request = self.pull_requests.open(name, base, title=title, body=body)
        # 5. The ledger lacks its address, or what was taken off its branch.
        if request.url != known or told:
            if not is_page(request.url):
                raise InvalidInput(
                    f"the host says that the pull request of {name} is at {shortened(request.url)!r}, which is no"
                    " address of a page (try setting the root URL of the host)"
                )
            return _order(Verb.ANNOTATE, proposal, self.author, pull_request=request.url, foreign=told)
        return None

    def _foreign(self, name: str, proposal: BurstProposal, head: CommitId, tips: Tips) -> tuple[str, ...]:
        """List what the branch of a proposal holds beside its approval; nothing where it is as it was made.

        It is as made where its one commit stands on the output branch, and adds the approval.
        """
        if tips.output is None:
            return ()
        judged = self._judged.get(name)
        if judged is None or judged[0] != head:
            judged = head, self._beside_approval(proposal, head, tips.output)
            self._judged[name] = judged
        return judged[1]

    def _beside_approval(self, proposal: BurstProposal, head: CommitId, output: CommitId) -> tuple[str, ...]:
        added = self.repository.added(head)
        approval = FileChange(path=approval_path(proposal), old=None, new=blob_of(write_approval(proposal)))
        others = tuple(change.path for change in added.changes if change != approval)
        if others or approval not in added.changes:
            return others or (f"commit {head}",)
        on_output = added.parent == output or any(
            commit.id == added.parent for limit in (_NEAR, _FAR) for commit in self.repository.log(output, limit=limit)
        )
        return () if on_output else (f"commit {added.parent or head}",)

    def _tell(self, name: str, head: CommitId, request: PullRequest | None, foreign: Sequence[str]) -> None:
        """Say what was put on the branch of a proposal, in the log and on its pull request."""
        self._log(
            name, f"{name} held {_listed(foreign)} that Overspill did not propose: it is as it was proposed again"
        )
        if request is not None:
            files = ", ".join(code(path) for path in foreign[:_FEW]) + (", and more" if len(foreign) > _FEW else "")
            self.pull_requests.comment(
                request,
                f"This branch held what Overspill did not propose: {files}. It is as it was proposed again, so that a"
                f" merge brings the approval and nothing else. What it held is commit {code(head)}; open a pull request"
                " of your own for it.",
            )

    def _remove(self, name: str, commit: CommitId) -> Order | None:
        """Close the pull request of what is proposed no more, and remove its branch."""
        request: PullRequest | None = self.pull_requests.find(name)
        if request is not None and request.state is PullRequestState.OPEN:
            self.pull_requests.close(request, comment=_ENDED)
        self.repository.move_head(name, old=commit, new=None)
        return None


def _listed(foreign: Sequence[str]) -> str:
    """Name the first of foreign files."""
    more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
    return f"{shortened(foreign[0], 120)}{more}"


def _reviewer(request: PullRequest | None) -> Identity:
    """Return who closed a pull request, as the author of a commit; a host may not say."""
    login = request.closed_by if request is not None else ""
    local = re.sub(r"[^A-Za-z0-9.-]+", "-", login).strip("-.")
    return Identity(name=local or "a reviewer", email=f"{local or 'reviewer'}@{_NO_MAIL}")


def _order(
    verb: Verb,
    proposal: BurstProposal,
    author: Identity,
    *,
    reason: str = "",
    pull_request: str = "",
    foreign: str = "",
) -> Order:
    workload = proposal.workload
    return Order(
        number=0,
        verb=verb,
        name=workload.name,
        workspace=workload.workspace,
        author=author,
        within=frozenset((workload.workspace,)),
        ruling=Ruling(
            workload=workload,
            proposal=proposal_id(proposal),
            reason=reason,
            pull_request=pull_request,
            foreign=foreign,
        ),
    )


def numbered(orders: Sequence[Order]) -> tuple[Order, ...]:
    """Give orders the numbers that a pass of their own answers them by."""
    return tuple(replace(order, number=number) for number, order in enumerate(orders, start=1))
