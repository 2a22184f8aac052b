"""What the log says of passes: a line for each change, for what goes wrong, and for what is mended. Else nothing."""

from __future__ import annotations

import structlog

from reconciler.daemon.reconcile import Outcome
from reconciler.errors import Problem, Severity

log = structlog.get_logger()


class Announcer:
    """Logs what is new since the pass before, so that a lasting problem is one line and not one a pass."""

    def __init__(self) -> None:
        self._problems: frozenset[Problem] = frozenset()
        self._suppressed: frozenset[tuple[str, str]] = frozenset()

    def tell(self, outcome: Outcome) -> None:
        """Log the changes, then problems that came or went, then changes that are newly suppressed."""
        for line in outcome.lines:
            log.info("committed", line=line)
        problems = frozenset(outcome.problems)
        for problem in sorted(problems - self._problems):
            report = log.error if problem.severity is Severity.ERROR else log.warning
            report("problem", line=str(problem))
        for problem in sorted(self._problems - problems):
            log.info("mended", line=f"mended: {problem}")
        self._problems = problems
        # By workload and reason: the numbers in the text move on at every pass.
        suppressed = (*outcome.plan.suppressed, *outcome.rendered.suppressed)
        keys = {(str(item.workload), str(item.reason)): item for item in suppressed}
        for key, item in keys.items():
            if key not in self._suppressed:
                log.info("held back", line=f"{item.workload}: {item.message}", reason=str(item.reason))
        self._suppressed = frozenset(keys)
