"""The trailers of commit messages: the only module that writes and reads their keys.

Programs read changes back from trailers (`history`); the format is a promise to users (docs/reference/commits.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

from reconciler.core.commits import message_parts
from reconciler.core.ledger.proposal_record import proposal_id
from reconciler.model.approval import BurstProposal
from reconciler.model.ids import CommitId, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import (
    Amend,
    Approve,
    Change,
    Close,
    EndProposal,
    Extend,
    Forget,
    Hold,
    Move,
    Place,
    ProposalChange,
    Propose,
    Receive,
    Release,
    RequestChange,
    Resize,
    Restore,
    Revert,
)
from reconciler.model.tree import Identity, LoggedCommit
from reconciler.text.timestamps import format_time
from reconciler.text.wording import sanitize


class Trailer(StrEnum):
    """A trailer, by its key in commit messages."""

    ACTION = "Overspill-Action"
    PLACEMENT = "Overspill-Placement"  # workspace/name
    REQUEST = "Overspill-Request"  # workspace/name
    PROPOSAL = "Overspill-Proposal"  # workspace/name-id
    CLUSTER = "Overspill-Cluster"
    SUBSET = "Overspill-Subset"  # of a WorkloadSpread
    EXPIRES = "Overspill-Expires"  # when the placement, or a hold, ends
    WHY = "Overspill-Why"  # a `model.plan.Why`
    PHASE = "Overspill-Phase"  # the final one of a placement
    MOVED_FROM = "Overspill-Moved-From"  # the cluster that a move leaves
    REPLACES = "Overspill-Replaces"  # the placement that a move ends
    SOURCE = "Overspill-Source"  # the commit of the source branch that was decided on
    FROM = "Overspill-From"  # what the objects of the placement were read from, where its template holds no copy
    SUPERSEDES = "Overspill-Supersedes"  # a commit that the branch lost, by a person's word
    OUTPUT = "Overspill-Output"  # on a cluster's branch: the commit of the output branch it stands for
    DIGEST = "Overspill-Digest"  # over the files of the placement
    DEMAND = "Overspill-Demand"  # what was missing until then, of a workload whose policy looks back
    REQUEST_ID = "Overspill-Request-Id"  # of the call of the API that asked for the change
    CONFIRM = "Overspill-Confirm"  # on the source branch, by people: `deletion` confirms a mass deletion

    def read(self, commit: LoggedCommit, default: str = "") -> str:
        """Return the trailer's value in a commit, `default` where the commit does not have it."""
        return commit.trailers.get(self, default)

    def among(self, commit: LoggedCommit) -> bool:
        """Tell whether a commit has the trailer."""
        return self in commit.trailers


class Action(StrEnum):
    """The values of `Trailer.ACTION`: what a commit does."""

    START = "Start"  # the output branch, a cluster's directory or a cluster's branch
    FOLLOW = "Follow"  # brings a cluster's branch to where the output branch is
    PLACE = "Place"
    RESIZE = "Resize"
    EXTEND = "Extend"
    MOVE = "Move"
    REVERT = "Revert"
    HOLD = "Hold"
    RELEASE = "Release"
    RESTORE = "Restore"
    RECEIVE = "Receive"
    AMEND = "Amend"
    CLOSE = "Close"
    FORGET = "Forget"
    PROPOSE = "Propose"
    APPROVE = "Approve"
    END_PROPOSAL = "EndProposal"
    DISCARD = "Discard"  # what came with an approval and was not proposed


_ACTIONS: Mapping[type[Change], Action] = {
    Place: Action.PLACE,
    Resize: Action.RESIZE,
    Extend: Action.EXTEND,
    Move: Action.MOVE,
    Revert: Action.REVERT,
    Hold: Action.HOLD,
    Release: Action.RELEASE,
    Restore: Action.RESTORE,
    Receive: Action.RECEIVE,
    Amend: Action.AMEND,
    Close: Action.CLOSE,
    Forget: Action.FORGET,
    Propose: Action.PROPOSE,
    Approve: Action.APPROVE,
    EndProposal: Action.END_PROPOSAL,
}

_BY_VALUE: Mapping[str, Action] = {value.value: value for value in Action}

_CONFIRMED = re.compile(rf"^[ \t]*{Trailer.CONFIRM}:[ \t]*deletion[ \t\r]*$", re.MULTILINE | re.IGNORECASE)

_ANY = re.compile(rf"(?:{'|'.join(Trailer)}): .*")

Pair = tuple[Trailer, str]


def write_trailers(pairs: Iterable[Pair]) -> str:
    """Write trailers as the last paragraph of a message, a line each; those without a value are left out."""
    return "\n".join(f"{trailer}: {sanitize(value)}" for trailer, value in pairs if value)


def is_trailer(line: str) -> bool:
    """Tell whether a line of a commit message is one of our trailers."""
    return _ANY.fullmatch(line) is not None


def confirms_deletion(commit: LoggedCommit) -> bool:
    """Return whether a commit of the source branch confirms a mass deletion.

    A line of its own anywhere below the subject counts: a squash puts the messages of a pull request into one, with
    their trailers in the middle.
    """
    return _CONFIRMED.search(commit.body) is not None


def action(commit: LoggedCommit) -> Action | None:
    """Return what a commit does, None where its trailers do not say."""
    return _BY_VALUE.get(Trailer.ACTION.read(commit))


def is_own(commit: LoggedCommit, committer: Identity) -> bool:
    """Tell whether a commit is Overspill's own: amending or cherry-picking one, or writing its trailers, makes none."""
    return Trailer.ACTION.among(commit) and commit.committer.email == committer.email


def is_for_cluster(commit: LoggedCommit) -> bool:
    """Tell whether a commit of ours was written for the branch of a cluster, and not for the output branch."""
    settles = action(commit) is Action.START and Trailer.CLUSTER.among(commit)
    return settles or Trailer.OUTPUT.among(commit)


def trailers(change: Change, source: CommitId, demand: str = "", request_id: str = "") -> str:
    """Write the trailers of a change that was decided on this commit of the source branch, and on this past demand.

    `request_id` is the id of the call of the API that asked for it.
    """
    digest = (Trailer.DIGEST, _digest(change))
    return write_trailers(
        (
            *_common(change),
            (Trailer.SOURCE, source),
            (Trailer.FROM, _made_from(change)),
            digest,
            *_specific(change),
            (Trailer.DEMAND, demand),
            (Trailer.REQUEST_ID, request_id),
        )
    )


def _common(change: Change) -> list[Pair]:
    """Return the trailers of a change: its action, and its placement or request."""
    done = (Trailer.ACTION, _ACTIONS[type(change)])
    match change:
        case Release(workload=workload, restraints=restraints):
            names = sorted({restraint.placement for restraint in restraints})
            clusters = sorted({restraint.cluster for restraint in restraints if restraint.cluster is not None})
            placements = [(Trailer.PLACEMENT, f"{workload.workspace}/{name}") for name in names]
            return [*placements, done, *((Trailer.CLUSTER, cluster) for cluster in clusters)]
        case Hold(placement=placement, restraint=restraint):
            return _placement(placement, done, restraint.until)
        case Receive() | Amend() | Close() | Forget():
            return [(Trailer.REQUEST, str(message_parts.record_of(change).workload)), done]
        case Propose(proposal=proposal) | Approve(proposal=proposal) | EndProposal(proposal=proposal):
            clusters = sorted({placement.cluster for placement in proposal.placements})
            named = (Trailer.PROPOSAL, proposal_name(proposal))
            until = (Trailer.EXPIRES, format_time(proposal.until))
            return [named, done, *((Trailer.CLUSTER, cluster) for cluster in clusters), until]
        case _:
            placement = _left(change)
            return _placement(placement, done, placement.expires_at)


def proposal_name(proposal: BurstProposal) -> str:
    """Return the name of a proposal in trailers: ``llm/vllm-3f0a90c17d2b``."""
    return f"{proposal.workload}-{proposal_id(proposal)}"


def _placement(placement: Placement, done: Pair, until: datetime) -> list[Pair]:
    return [
        (Trailer.PLACEMENT, placement.id),
        done,
        (Trailer.CLUSTER, placement.cluster),
        (Trailer.SUBSET, placement.subset),
        (Trailer.EXPIRES, format_time(until)),
    ]


def _specific(change: Change) -> list[Pair]:
    """Give the trailers that only some kinds of changes have."""
    match change:
        case Revert(placement=placement, why=why, phase=phase):
            return [(Trailer.WHY, why.value), (Trailer.PHASE, phase.value), *_request(placement.workload)]
        case Move(before=before, after=after, why=why):
            source = (Trailer.MOVED_FROM, str(before.cluster))
            replaces = [] if before.id == after.id else [(Trailer.REPLACES, before.id)]
            return [(Trailer.WHY, why.value), source, *_request(after.workload), *replaces]
        case EndProposal(why=why):
            return [(Trailer.WHY, why.value)]
        case Place() | Extend() | Restore():
            return _request(_left(change).workload)
        case _:
            return []


def _request(workload: WorkloadId) -> list[Pair]:
    """Name the request that a placement is of, if it is of one."""
    return [(Trailer.REQUEST, str(workload))] if workload.request else []


def _left(change: Place | Resize | Extend | Move | Revert | Restore) -> Placement:
    """Return the placement as a change leaves it, or as it removes it."""
    match change:
        case Place(placement=placement) | Revert(placement=placement):
            return placement
        case Resize(after=after) | Extend(after=after) | Move(after=after):
            return after
        case Restore(drifted=drifted):
            return drifted.placement


def _made_from(change: Change) -> str:
    """Return what the files of a change were made from, where it writes any from a source."""
    if not isinstance(change, (Place, Resize, Move)) or (made_from := _left(change).made_from) is None:
        return ""
    return made_from.text


def _digest(change: Change) -> str:
    """Return the digest of the files that a change writes or removes, if it touches any."""
    return "" if isinstance(change, (Hold, Release, RequestChange, ProposalChange)) else _left(change).digest
