"""Reports changes since the pass before: events of suppressed changes to sinks, problems and rollouts to the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import structlog

from reconciler.core.commits.events import SuppressedByReason, of_held_back
from reconciler.core.observe.rollouts import RolloutFailure, Rollouts
from reconciler.daemon.event_sinks import publish_events
from reconciler.daemon.reconcile import Outcome, PassDecision
from reconciler.errors import Problem, Severity
from reconciler.model.ids import CommitId
from reconciler.model.plan import Reason, Suppressed
from reconciler.model.rollout import EngineState
from reconciler.ports import EventSink

FIRST_SIGHT = timedelta(seconds=10)
"""Time after the start in which an unseen primary is not logged: its first lists take a moment."""

LATE = timedelta(minutes=4)
"""Time for an engine to pick up a new version before the delay is logged.

An engine without a webhook polls: Argo CD every three minutes at most (two, and a jitter of one), Flux every minute.
Then it still has to fetch and apply. A resize may thus be late without a fault.
"""

log = structlog.get_logger()


class Announcer:
    """Logs changes since the pass before: a lasting state is logged when it begins and when it ends."""

    def __init__(self, *, source_branch: str, sinks: Sequence[EventSink]) -> None:
        """Know the source branch by the name that its line gives it."""
        self._source_branch = source_branch
        self._sinks = sinks
        self._began: datetime | None = None
        self._source: CommitId | None = None
        self._problems: frozenset[Problem] = frozenset()
        self._held_back: SuppressedByReason = {}
        self._rollouts = Rollouts()
        self._waiting: dict[str, str] = {}

    def tell(self, outcome: Outcome) -> None:
        """Log the move of the source branch, then other changes of state; those of the plan are published already."""
        self._tell_source(outcome.decision.tips.source)
        self._tell_problems(frozenset(outcome.problems))
        self._tell_rollouts(outcome.decision.inputs.rollouts, outcome.decision.inputs.now)
        self._publish_held_back(outcome)

    def _tell_source(self, tip: CommitId | None) -> None:
        """Log that the source branch has moved; its first commit is not logged."""
        if tip is not None and self._source not in (None, tip):
            log.info("source moved", line=f"{self._source_branch} is now at {tip[:12]}")
        self._source = tip or self._source

    def _tell_problems(self, problems: frozenset[Problem]) -> None:
        for problem in sorted(problems - self._problems):
            report = log.error if problem.severity is Severity.ERROR else log.warning
            trace = {} if problem.bug is None else {"exception": problem.bug.trace}
            report("problem" if problem.bug is None else "bug", line=str(problem), **trace)
        # By file: one revert mends all problems of a file, those that follow from others included.
        gone = (_files(self._problems) - _files(problems)) | (
            _files_with_errors(self._problems) - _files_with_errors(problems)
        )
        for path in sorted(gone):
            log.info("mended", line=f"mended: {path}")
        self._problems = problems

    def _tell_rollouts(self, rollouts: Rollouts, now: datetime) -> None:
        """Log which placements have become healthy or unhealthy; the start of a new placement is not logged."""
        before, self._rollouts = self._rollouts, rollouts
        if before.signs is None:  # the state at the start is no news
            return
        if rollouts is not before:
            for path, failure in rollouts.new_failures(before):
                if failure.state is EngineState.PENDING:
                    self._waiting[path] = failure.digest
                else:
                    _not_healthy(path, failure)
        self._tell_late(rollouts, now)
        if rollouts is not before:
            for path in rollouts.recovered(before):
                log.info("healthy", line=f"{path}: healthy")

    def _tell_late(self, rollouts: Rollouts, now: datetime) -> None:
        """Log the engines that are late in taking up a version, and forget those that have taken it up."""
        for path, digest in sorted(self._waiting.items()):
            failure = rollouts.ailing.get(path)
            if failure is None or (failure.digest, failure.state) != (digest, EngineState.PENDING):
                del self._waiting[path]
            elif now - failure.since >= LATE:
                del self._waiting[path]
                _not_healthy(path, failure)

    def _publish_held_back(self, outcome: Outcome) -> None:
        before = self._held_back
        suppressed = (*outcome.plan.suppressed, *outcome.rendered.suppressed)
        lasting = [item for item in suppressed if not self._too_early(outcome.decision, item)]
        self._held_back = {(item.workload, item.reason): item for item in lasting}
        events = tuple(of_held_back(before, self._held_back, outcome.events, outcome.decision.inputs.now))
        if events:
            publish_events(self._sinks, events, ())

    def _too_early(self, decision: PassDecision, item: Suppressed) -> bool:
        """Return whether the primary has only not been observed yet, since the daemon started a moment ago."""
        self._began = self._began or decision.inputs.now
        if item.reason is not Reason.PRIMARY_UNSEEN or decision.inputs.now - self._began >= FIRST_SIGHT:
            return False
        workspace = decision.inputs.desired.workspaces.get(item.workload.workspace)
        return workspace is not None and workspace.primary not in decision.inputs.observed.clusters


def _not_healthy(path: str, failure: RolloutFailure) -> None:
    log.warning("not healthy", line=f"{path}: {failure.state}: {failure.message}")


def _files(problems: Iterable[Problem]) -> frozenset[str]:
    return frozenset(problem.path for problem in problems)


def _files_with_errors(problems: Iterable[Problem]) -> frozenset[str]:
    return _files(problem for problem in problems if problem.severity is Severity.ERROR)
