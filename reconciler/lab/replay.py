"""Recorded passes decided again: the same plan, or where it parts.

Files come from git, by the two commits of each pass; everything else comes from the recording. Each pass begins with
what was recorded, so that one that parts changes none of those after it. Only the subsets that passes render in advance
are not recorded: they are rendered again, in the order of the passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.decide.decide import decide, receive
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe import demand
from reconciler.core.observe.rollouts import Rollouts
from reconciler.core.observe.track_record import TrackRecord
from reconciler.core.recording.pass_record import PLAN, PassKind, PassRecord, RecordedPlan
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.cost.budgets import BudgetReader
from reconciler.daemon.deletion_confirmations import DeletionConfirmations
from reconciler.daemon.reconcile import with_mass_deletion
from reconciler.daemon.source import SourceReader
from reconciler.errors import Problem, Severity
from reconciler.model.drafted_subsets import DraftedSubsets
from reconciler.model.ids import CommitId
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired
from reconciler.model.tree import Identity, Tips
from reconciler.model.workload import Json
from reconciler.ports import Repository

ABSENT = "(none)"
"""Stands for a field or an entry that one of two plans does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """The first difference of two plans."""

    subject: str
    """The change or what is held back, with its workload; empty where it is the plan as a whole."""
    field: str
    """The path of the field, such as ``placement.replicas``; empty where all of it differs."""
    recorded: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A recorded pass that was decided again."""

    record: PassRecord
    inputs: PassInput
    plan: Plan
    parting: Parting | None
    """None where the plan is the same."""


class Replay:
    """Decides recorded passes again, on a repository that holds the history of both branches."""

    def __init__(self, repository: Repository, source: SourceReader, branch: BranchReader, author: Identity) -> None:
        self._repository, self._author = repository, author
        self._budgets, self._confirmations = BudgetReader(), DeletionConfirmations(repository)
        self._source, self._branch = source, branch
        self._enrolment = Enrolment(Desired(commit=CommitId("")), {})
        self._drafted = DraftedSubsets()
        self._held: dict[CommitId, bool] = {}

    def run(self, records: Iterable[PassRecord | Problem]) -> Iterator[Replayed | Problem]:
        """Yield each pass, and each that cannot be decided again as a problem."""
        for record in records:
            yield record if isinstance(record, Problem) else self.decide(record)

    def latest(self, records: Iterable[PassRecord], at: datetime) -> Replayed | Problem | None:
        """Decide the last pass at or before a moment again, after those that have rendered subsets for it."""
        latest: PassRecord | None = None
        for record in records:
            if record.at <= at and (latest is None or record.at >= latest.at):
                if latest is not None and self._renders_subsets(latest):
                    self.decide(latest)
                latest = record
        return None if latest is None else self.decide(latest)

    def decide(self, record: PassRecord) -> Replayed | Problem:
        """Decide one pass again, with the subsets that the passes decided before it have rendered."""
        if (obstacle := self._obstacle(record)) is not None:
            return obstacle
        if record.first:
            self._drafted = DraftedSubsets()
        inputs = self._inputs(record)
        plan = decide(inputs) if record.kind is PassKind.WHOLE else receive(inputs, ())
        if record.kind is PassKind.WHOLE:
            self._drafted = plan.drafted.next_pass()
        again = RecordedPlan.of(plan, record.kind)
        return Replayed(record=record, inputs=inputs, plan=plan, parting=parting(record.plan, again))

    def _obstacle(self, record: PassRecord) -> Problem | None:
        """Return why a pass cannot be decided again; None where all that it depended on is there."""
        # 1. The pass depended on a credential, which is not recorded.
        if record.orders_redacted:
            return _left_out(record, "an order held a credential, which is not recorded")
        # 2. A commit is not in the repository any more, or never got there.
        for branch, commit in (("source", record.source), ("output", record.output)):
            if commit is not None and not self._holds(commit):
                return _left_out(record, f"its {branch} commit {commit[:12]} is not in the repository")
        return None

    def _renders_subsets(self, record: PassRecord) -> bool:
        """Return whether a pass may have rendered subsets for those after it: its fleet has some with a patch."""
        if record.kind is not PassKind.WHOLE or self._obstacle(record) is not None:
            return False
        policies = self._source.expanded(record.source, record.observed).policies.values()
        spreads = (policy.spread for policy in policies if policy.spread is not None)
        return any(subset.patch for spread in spreads for subset in spread.subsets)

    def _inputs(self, record: PassRecord) -> PassInput:
        desired = self._source.expanded(record.source, record.observed)
        tips = Tips(source=record.source, output=record.output)
        ledger = self._branch.ledger(record.output)
        self._enrolment = self._enrolment.updated(desired, ledger.requests)
        inputs = PassInput(
            desired=self._enrolment.desired,
            ledger=ledger,
            observed=record.observed,
            demands=demand.measure(desired, record.observed, record.history, record.at, record.past),
            now=record.at,
            reach=self._enrolment.reach,
            drafted=self._drafted,
            history=record.history,
            past=record.past,
            rollouts=Rollouts.of(record.rollouts, watched=record.watched),
            enrolment=self._enrolment,
            orders=record.orders,
            lost=record.lost,
            track_record=TrackRecord.remembered(record.starts, record.failures),
            budgets=self._budgets.budgets(self._repository, self._author, desired, tips, record.at),
        )
        inputs = with_mass_deletion(inputs, self._confirmations)
        return replace(inputs, unwritable=record.unwritable, begun=record.begun)

    def _holds(self, commit: CommitId) -> bool:
        if commit not in self._held:
            self._held[commit] = bool(self._repository.held([(commit, "fleet.yaml")]))
        return self._held[commit]


def _left_out(record: PassRecord, why: str) -> Problem:
    path = f"pass of {record.at:%Y-%m-%dT%H:%M:%SZ}"
    return Problem(path=path, message=f"is not decided again: {why}", severity=Severity.WARNING)


def parting(recorded: RecordedPlan, now: RecordedPlan) -> Parting | None:
    """Find the first difference of two plans: in changes, then in what is held back, answers and the next look."""
    before, after = PLAN.encode(recorded), PLAN.encode(now)
    if before == after:
        return None
    for part in ("changes", "suppressed"):
        entries = before.get(part, ()), after.get(part, ())
        for index in range(max(map(len, entries))):
            old, new = (every[index] if index < len(every) else None for every in entries)
            if old != new:
                field, first, other = _first_difference(old, new)
                subject = _subject(new if old is None else old, part)
                return Parting(subject=subject, field=field, recorded=first, now=other)
    field, first, other = _first_difference(before, after)
    return Parting(subject="", field=field, recorded=first, now=other)


def _first_difference(before: Json, after: Json) -> tuple[str, str, str]:
    """Return the path of the first difference of two documents, and both values there."""
    path: list[str] = []
    while True:
        keys: Iterable[str | int]
        if isinstance(before, dict) and isinstance(after, dict) and before.get("kind") == after.get("kind"):
            keys = [*before, *(key for key in after if key not in before)]
            old, new = before.get, after.get
        elif isinstance(before, list) and isinstance(after, list):
            keys = range(max(len(before), len(after)))
            old, new = dict(enumerate(before)).get, dict(enumerate(after)).get
        else:
            return ".".join(path), _shown(before), _shown(after)
        key = next((key for key in keys if old(key) != new(key)), None)
        if key is None:
            # The same entries in another order.
            return ".".join(path), _shown(before), _shown(after)
        path.append(str(key))
        before, after = old(key), new(key)


def _shown(value: Json) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_shown(item)}" for key, item in value.items() if not isinstance(item, dict | list))
    if isinstance(value, list):
        return f"{len(value)} entries"
    return str(value)


def _subject(entry: Json, part: str) -> str:
    """Name a change by its kind and placement, and what is held back by its workload."""
    if part == "suppressed":
        return f"{entry['reason']} {_workload(entry['workload'])}"
    kind = entry["kind"]
    for key in ("placement", "after", "before", "record", "drifted"):
        value = entry.get(key)
        value = value.get("placement", value.get("request", value)) if isinstance(value, dict) else None
        if value and "name" in value:
            return f"{kind} {value['name']}"
    return f"{kind} {_workload(entry['workload'])}" if "workload" in entry else str(kind)


def _workload(entry: Json) -> str:
    return f"{entry['workspace']}/{entry['name']}"
