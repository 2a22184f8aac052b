"""The commits that received what callers ask for a second time, so that they are answered like the first time."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core.commits.trailers import Action, Trailer, action
from reconciler.model.ids import CommitId
from reconciler.model.request import Answer
from reconciler.model.tree import Tips
from reconciler.ports import Repository

MOST = 1000
"""Commits that are read back at most: a call is made again at once, or hardly ever."""


def received(repository: Repository, tips: Tips, answers: Mapping[int, Answer]) -> dict[int, CommitId]:
    """Find the commit that received each request that had been received before, as far back as `MOST` commits.

    The branch is read no further back than to the first of those times, and not at all where nobody asks again.
    """
    again = {number: answer for number, answer in answers.items() if answer.since is not None}
    if not again or tips.output is None:
        return {}
    first = min(answer.since for answer in again.values() if answer.since is not None)
    newest: dict[str, CommitId] = {}
    for commit in repository.log(tips.output, since=first, limit=MOST):
        if action(commit) is Action.RECEIVE:
            newest.setdefault(Trailer.REQUEST.read(commit), commit.id)
    return {number: newest[str(answer.workload)] for number, answer in again.items() if str(answer.workload) in newest}
