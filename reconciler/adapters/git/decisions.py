"""The commits of the source branch that our commits of the output branch say they were decided on.

They outlive the disk: a mirror that is made again learns from them what was in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from reconciler.adapters.git.branches import RemoteBranches
from reconciler.adapters.git.commits import StoredCommit
from reconciler.core.commits.trailers import Trailer, is_own
from reconciler.errors import Conflict, Transient
from reconciler.model.ids import CommitId, read_commit_id
from reconciler.model.tree import Identity


def decided_on(branches: RemoteBranches, committer: Identity, *, most: int) -> Iterator[CommitId]:
    """Yield what the `most` last commits of the output branch name, newest first, whether or not anybody has it.

    A remote that is a shallow clone names less. Raises Transient where history has to be fetched and cannot be, or
    where the output branch has moved since it was fetched.
    """
    output = branches.tips.output
    if output is None:
        return
    last: CommitId | None = None
    for stored in islice(_first_parents(branches, output), most):
        if is_own(stored.logged, committer) and Trailer.SOURCE.among(stored.logged):
            with suppress(ValueError):
                named = read_commit_id(stored.logged.trailers[Trailer.SOURCE])
                if named != last:
                    yield named
                last = named


def _first_parents(branches: RemoteBranches, tip: CommitId) -> Iterator[StoredCommit]:
    """Yield the commits of the output branch, as far back as the remote has them."""
    try:
        yield from branches.history(branches.output).first_parents(tip)
    except Conflict as conflict:
        if branches.heads(branches.output).get(branches.output) != tip:
            raise Transient("reading back what was decided on: the output branch has moved meanwhile") from conflict
