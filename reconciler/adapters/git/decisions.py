"""The commits of the source branch that our commits of the output branch say they were decided on.

They outlive the disk: a mirror that is made again learns from them what was in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from reconciler.adapters.git.branches import RemoteBranches
from reconciler.core.commits.trailers import Trailer, is_own
from reconciler.model.ids import CommitId, read_commit_id
from reconciler.model.tree import Identity


def decided_on(branches: RemoteBranches, committer: Identity, *, most: int) -> Iterator[CommitId]:
    """Yield what the `most` last commits of the output branch name, newest first, whether or not anybody has it.

    Raises Transient where history has to be fetched and cannot be.
    """
    output = branches.tips.output
    if output is None:
        return
    last: CommitId | None = None
    for stored in islice(branches.history(branches.output).first_parents(output), most):
        if is_own(stored.logged, committer) and Trailer.SOURCE.among(stored.logged):
            with suppress(ValueError):
                named = read_commit_id(stored.logged.trailers[Trailer.SOURCE])
                if named != last:
                    yield named
                last = named
