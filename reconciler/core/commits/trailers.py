"""The trailers of commit messages: the only module that writes and reads their keys.

Programs read changes back from trailers (`history`); the format is a promise to users (docs/reference/commits.md).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import takewhile

from reconciler.core.ledger.proposal_record import proposal_id
from reconciler.model.action import Action
from reconciler.model.approval import BurstProposal
from reconciler.model.ids import CommitId, read_commit_id
from reconciler.model.plan import Change
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
    WHY = "Overspill-Why"  # a `model.end_reason.EndReason` or a `model.approval.ProposalEnd`
    PHASE = "Overspill-Phase"  # the final one of a placement
    MOVED_FROM = "Overspill-Moved-From"  # the cluster that a move leaves
    REPLACES = "Overspill-Replaces"  # the placement that a move ends
    SOURCE = "Overspill-Source"  # the commit of the source branch that was decided on
    FROM = "Overspill-From"  # what the objects of the placement were read from, where its template holds no copy
    SUPERSEDES = "Overspill-Supersedes"  # a commit that the branch lost, by a person's word
    BRANCH = "Overspill-Branch"  # the branch that the commit was written for
    OUTPUT = "Overspill-Output"  # on a cluster's branch: the commit of the output branch it stands for
    DIGEST = "Overspill-Digest"  # over the files of the placement
    DEMAND = "Overspill-Demand"  # what was missing until then, of a workload whose policy looks back
    REQUEST_ID = "Overspill-Request-Id"  # of the call of the API that asked for the change
    CONFIRM = "Overspill-Confirm"  # on the source branch, by people: `deletion` confirms a mass deletion

    def read(self, commit: LoggedCommit, default: str = "") -> str:
        """Return the trailer's value in a commit, `default` where the commit does not have it."""
        return commit.trailers.get(self, default)

    def among(self, commit: LoggedCommit) -> bool:
        """Return whether a commit has the trailer."""
        return self in commit.trailers


_BY_VALUE: Mapping[str, Action] = {value.value: value for value in Action}

_CONFIRMED = re.compile(rf"^[ \t]*{Trailer.CONFIRM}:[ \t]*deletion[ \t\r]*$", re.MULTILINE | re.IGNORECASE)

_ANY = re.compile(rf"(?:{'|'.join(Trailer)}): .*")

Pair = tuple[Trailer, str]


def write_trailers(pairs: Iterable[Pair]) -> str:
    """Write trailers as the last paragraph of a message, a line each; those without a value are left out."""
    return "\n".join(f"{trailer}: {sanitize(value)}" for trailer, value in pairs if value)


def is_trailer(line: str) -> bool:
    """Return whether a line of a commit message is one of our trailers."""
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
    """Return whether a commit is Overspill's own: one that is amended, cherry-picked or written by hand is not."""
    return Trailer.ACTION.among(commit) and committer.has(commit.committer.email)


def is_made_by_another(commit: LoggedCommit, committer: Identity) -> bool:
    """Return whether a commit looks like Overspill's own, but for who has committed it."""
    return Trailer.ACTION.among(commit) and not committer.has(commit.committer.email)


def naming_branch(message: str, branch: str) -> str:
    """Return the message of a commit of ours with the branch that it is written for, by its short name.

    It names no other. A message without an action stays as it is: its commit counts as nobody's but its author's, as
    that of a branch for review.
    """
    body, gap, last = message.rstrip("\n").rpartition("\n\n")
    lines = [line for line in last.split("\n") if not line.startswith(f"{Trailer.BRANCH}: ")]
    if not any(line.startswith(f"{Trailer.ACTION}: ") for line in lines):
        return message
    return "\n".join([f"{body}{gap}{lines[0]}", *lines[1:], write_trailers([(Trailer.BRANCH, branch)])]) + "\n"


def is_for_cluster(commit: LoggedCommit) -> bool:
    """Return whether a commit of ours was written for the branch of a cluster, and not for the output branch."""
    settles = action(commit) is Action.START and Trailer.CLUSTER.among(commit)
    return settles or Trailer.OUTPUT.among(commit)


def is_written_for(commit: LoggedCommit, branch: str, *, is_output: bool) -> bool:
    """Return whether a commit of ours was written for a branch, by its short name.

    Commits of earlier versions name no branch; they are only known to be of an output branch, or of a cluster's.
    """
    named = Trailer.BRANCH.read(commit)
    return named == branch if named else is_for_cluster(commit) is not is_output


def superseded(commit: LoggedCommit) -> list[CommitId]:
    """Return the commits that one gives up or stands for by a person's word, the last named first.

    Each has a trailer of its own. One that names no commit is passed over.
    """
    if not Trailer.SUPERSEDES.among(commit):
        return []
    named: list[CommitId] = []
    for line in takewhile(lambda line: line.strip(" \t"), reversed(commit.body.split("\n"))):  # the last paragraph
        if line.startswith(f"{Trailer.SUPERSEDES}:"):
            with contextlib.suppress(ValueError):
                named.append(read_commit_id(line.partition(":")[2].strip()))
    return named


def trailers(change: Change, source: CommitId, demand: str = "", request_id: str = "") -> str:
    """Write the trailers of a change that was decided on this commit of the source branch, and on this past demand.

    `request_id` is the id of the call of the API that asked for it.
    """
    return write_trailers(
        (
            *_common(change),
            (Trailer.SOURCE, source),
            (Trailer.FROM, _made_from(change)),
            (Trailer.DIGEST, _digest(change)),
            *_specific(change),
            (Trailer.DEMAND, demand),
            (Trailer.REQUEST_ID, request_id),
        )
    )


def _common(change: Change) -> Iterator[Pair]:
    """Yield the trailers of every change: its action, and its placement, request or proposal."""
    done, placement, proposal = (Trailer.ACTION, change.action), change.after or change.before, change.proposal
    clusters = ((Trailer.CLUSTER, cluster) for cluster in change.clusters)
    if placement is not None:
        held = change.restraint if change.action is Action.HOLD else None
        yield from ((Trailer.PLACEMENT, placement.id), done, (Trailer.CLUSTER, placement.cluster))
        yield (Trailer.SUBSET, placement.subset)
        yield (Trailer.EXPIRES, format_time(placement.expires_at if held is None else held.until))
    elif proposal is not None:
        yield from ((Trailer.PROPOSAL, proposal_name(proposal)), done, *clusters)
        yield (Trailer.EXPIRES, format_time(proposal.until))
    elif change.record is not None:
        yield from ((Trailer.REQUEST, str(change.workload)), done)
    else:
        names = sorted({restraint.placement for restraint in change.restraints})
        yield from ((Trailer.PLACEMENT, f"{change.workload.workspace}/{name}") for name in names)
        yield from (done, *clusters)


def _specific(change: Change) -> Iterator[Pair]:
    """Yield the trailers that only some changes have; the others have them without a value."""
    placement, moved = change.after or change.before, change.before if change.action is Action.MOVE else None
    yield (Trailer.WHY, change.why or "")
    yield (Trailer.PHASE, change.phase if change.action is Action.REVERT else "")
    yield (Trailer.MOVED_FROM, "" if moved is None else moved.cluster)
    yield (Trailer.REQUEST, str(change.workload) if change.workload.request and placement is not None else "")
    yield (Trailer.REPLACES, "" if moved is None or moved.id == change.placement.id else moved.id)


def proposal_name(proposal: BurstProposal) -> str:
    """Return the name of a proposal in trailers: ``llm/vllm-3f0a90c17d2b``."""
    return f"{proposal.workload}-{proposal_id(proposal)}"


def _made_from(change: Change) -> str:
    """Return what the files of a change were made from; empty where it writes none from a source."""
    made_from = change.placement.made_from if change.deploys else None
    return "" if made_from is None else made_from.text


def _digest(change: Change) -> str:
    """Return the digest of the files that a change writes or removes; empty where it touches none."""
    placement = change.after or change.before
    return "" if placement is None or change.action is Action.HOLD else placement.digest
