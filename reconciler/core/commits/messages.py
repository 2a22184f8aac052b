"""The commit message of every change, and its one line for a terminal.

The subject names the change, the body gives the reasons with their numbers, the `trailers` are for programs. The format
is a promise to users: docs/reference/commits.md shows an example of each, and a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reconciler.core.commits import message_parts
from reconciler.core.commits.trailers import trailers
from reconciler.core.workloads import replica_count
from reconciler.model.ids import CommitId
from reconciler.model.placement import Placement, Restraint, RestraintKind, place_name
from reconciler.model.plan import (
    Approve,
    Change,
    Choice,
    EndProposal,
    EndReason,
    Extend,
    Hold,
    Move,
    Place,
    ProposalChange,
    Propose,
    Refusal,
    Release,
    RequestChange,
    Resize,
    Restore,
    Revert,
)
from reconciler.model.tree import LoggedCommit
from reconciler.model.units import format_duration
from reconciler.text.scores import describe_scores
from reconciler.text.timestamps import format_time
from reconciler.text.wording import amounts, as_clause, count, join_names, sanitize, sentence, wrap_text

MAX_REFUSALS = 5
"""Refused clusters that one message names; `explain` tells all of them."""

_LONG_VERSION = re.compile(r"\b((?:sha256-)?[0-9a-f]{12})[0-9a-f]{28,52}\b")
"""A commit or a digest; the trailer has the whole of it."""

_WHY = {
    EndReason.EXPIRED: "Expired",
    EndReason.DEMAND_GONE: "The demand has gone",
    EndReason.FAILED: "Failed",
    EndReason.SUCCEEDED: "Succeeded",
    EndReason.PREEMPTED: "Preempted",
    EndReason.IDLE: "Idle",
    EndReason.FAIR_SHARE: "Its room is shared",
    EndReason.CLUSTER_LOST: "Its cluster is lost",
    EndReason.POLICY: "By policy",
    EndReason.REQUESTED: "Requested",
}


def subject(change: Change) -> str:
    """Write the first line of a change's commit message."""
    if isinstance(change, RequestChange):
        return message_parts.subject(change)
    if isinstance(change, ProposalChange):
        return message_parts.proposal_subject(change)
    match change:
        case Place(placement=placement):
            return placed(placement)
        case Resize(before=before, after=after) if replaces_source(before, after):
            return f"update({after.workload}): {_replicas_clause(after)}"
        case Resize(before=before, after=after):
            return f"resize({after.workload}): {replica_count.describe_resize(before, after)} on {_at(after)}"
        case Extend(after=after):
            return f"extend({after.workload}): {_replicas_clause(after)} until {format_time(after.expires_at)}"
        case Move(before=before, after=after):
            return f"move({after.workload}): {count(before.replicas, 'replica')} from {_at(before)} to {_at(after)}"
        case Revert(placement=placement):
            return f'Revert "{placed(placement)}"'
        case Hold(workload=workload, restraint=restraint):
            return f"hold({workload}): {_restraint_scope(restraint)} until {format_time(restraint.until)}"
        case Release(workload=workload, restraints=restraints):
            clusters = join_names(sorted({_restraint_scope(restraint) for restraint in restraints}))
            return f"release({workload}): {clusters}"
        case Restore(drifted=drifted):
            placement = drifted.placement
            return f"restore({placement.workload}): {placement.name} on {_at(placement)}"


def placed(placement: Placement) -> str:
    """Write the subject that a placement of this size and length has when it is made."""
    lasting = format_duration(placement.expires_at - placement.created_at)
    return f"{placement.origin}({placement.workload}): {_replicas_clause(placement)} for {lasting}"


def message(
    change: Change,
    *,
    source: CommitId,
    history: Sequence[LoggedCommit] = (),
    demand: str = "",
    request_id: str = "",
) -> str:
    """Write a change's whole commit message, trailers last.

    `source` is the commit of the source branch that was decided on. `history` are the commits of the placement that a
    Revert ends or a Move takes away, newest first; the oldest gives a revert its title. `demand` is the past demand of
    the workload, where its policy looks back. `request_id` is the id of the call of the API that asked for it.
    """
    title = subject(change)
    if isinstance(change, Revert) and history:
        title = f'Revert "{sanitize(history[-1].subject)}"'
    paragraphs = [title]
    body = "\n".join(map(wrap_text, reason_paragraphs(change)))
    if body:
        paragraphs.append(body)
    if isinstance(change, (Revert, Move)) and history:
        paragraphs.append("\n".join(f"This reverts commit {commit.id}." for commit in history))
    paragraphs.append(trailers(change, source, demand, request_id))
    return "\n\n".join(paragraphs) + "\n"


def line(change: Change, title: str = "") -> str:
    """Tell a change in one line of a terminal: the subject of its commit, and in brackets why.

    `title` is the subject that the commit of a Revert has; by default that of a placement which was never changed.
    """
    if isinstance(change, RequestChange):
        return _with(subject(change), message_parts.request_reason(change))
    if isinstance(change, ProposalChange):
        return _with(subject(change), message_parts.proposal_reason(change))
    match change:
        case Place(placement=placement, shortage=shortage, choice=choice, detail=detail):
            if shortage is None:
                return _with(subject(change), f"{as_clause(detail)}{reason_clause(choice)}".removeprefix("; "))
            wait = message_parts.describe_wait(shortage, placement)
            signals = message_parts.describe_signals(shortage, placement)
            return f"{subject(change)} ({wait}{signals}{reason_clause(choice)})"
        case Revert(placement=placement, why=why, detail=detail):
            title, replicas = title or subject(change), _replicas_clause(placement)
            reason = f"{why}: {as_clause(detail)}" if as_clause(detail) else str(why)
            return _with(title, reason if _names(title, replicas) else f"{replicas}; {reason}")
        case Hold(restraint=restraint):
            return _with(subject(change), as_clause(restraint.reason))
        case Resize(after=after, detail=detail, shortage=shortage, choice=choice):
            return _with(
                subject(change),
                f"{as_clause(detail)}{message_parts.describe_signals(shortage, after)}{reason_clause(choice)}"
                f"{f'; {after.kept}' if after.kept else ''}".removeprefix("; "),
            )
        case Extend(detail=detail) | Release(detail=detail) | Restore(detail=detail):
            return _with(subject(change), as_clause(detail))
        case Move(why=why, detail=detail, choice=choice):
            return _with(
                subject(change), f"{f'{why}: {as_clause(detail)}' if as_clause(detail) else why}{reason_clause(choice)}"
            )


def reason_clause(choice: Choice | None) -> str:
    """Say after a semicolon what a cluster was taken `because` of; empty where its place alone spoke for it."""
    return f"; {choice.because}" if choice is not None and choice.because else ""


def _names(title: str, clause: str) -> bool:
    """Tell whether a title says so much of a placement: not ``13 replicas on worker-20`` for its tail."""
    return re.search(rf"(?<![\w-]){re.escape(clause)}(?![\w./-])", title) is not None


def _with(text: str, reason: str) -> str:
    return f"{text} ({reason})" if reason else text


def _replicas_clause(placement: Placement) -> str:
    return f"{count(placement.replicas, 'replica')} on {_at(placement)}"


def _at(placed: Placement | Choice | Refusal) -> str:
    """Name the cluster, and the subset that it is for; that may be any text of a person's."""
    return sanitize(placed.where) if placed.subset else placed.cluster


def _restraint_scope(restraint: Restraint) -> str:
    if restraint.cluster is None:
        return "any cluster"
    return sanitize(place_name(restraint.cluster, restraint.subset)) if restraint.subset else restraint.cluster


def reason_paragraphs(change: Change) -> tuple[str, ...]:
    """Write the body's paragraphs, one line each, still unbroken."""
    return tuple(filter(None, _reason_paragraphs(change)))


def _reason_paragraphs(change: Change) -> Iterable[str]:
    match change:
        case Place(placement=placement, shortage=shortage, choice=choice, refused=refused, detail=detail):
            yield sentence(detail)
            yield message_parts.describe_shortage(shortage, placement)
            yield _choice(choice, refused)
        case Resize(before=before, after=after, detail=detail, shortage=shortage, choice=choice, refused=refused):
            yield sentence(detail)
            yield message_parts.describe_shortage(shortage, after)
            yield _choice(choice, refused)
            yield _taken_up(before, after)
            yield _kept(after)
            yield held(change.restraint)
        case Extend(before=before, after=after, detail=detail):
            yield sentence(detail)
            moved = after.expires_at - before.expires_at
            later = f"{format_duration(abs(moved))} {'later' if moved == abs(moved) else 'earlier'}"
            yield f"It ends {later} than {format_time(before.expires_at)}."
            yield _kept(after) if after.kept != before.kept else ""
        case Move(choice=choice, refused=refused, before=before, joined=joined, after=after):
            yield _because(change.why, change.detail)
            yield f"It joins {joined.name} there, which grows to {after.replicas} replicas." if joined else ""
            yield _choice(choice, refused)
            yield held(change.restraint)
            yield _taken_up(joined or before, after)
            yield _kept(after)
        case Revert(why=why, detail=detail, restraint=restraint):
            yield _because(why, detail)
            yield held(restraint)
        case Hold(restraint=restraint):
            yield sentence(restraint.reason)
            yield held(restraint)
        case Release(restraints=restraints, detail=detail):
            yield sentence(detail)
            yield from (f"{restraint.placement}: {_since(restraint)}." for restraint in restraints)
        case Restore(detail=detail):
            yield sentence(detail)
            yield "To change what is deployed, change the template: the next resize takes it up."
            yield "To end a placement, delete its directory."
        case EndProposal(restraint=restraint):
            yield from message_parts.proposal_paragraphs(change)
            yield held(restraint)
        case Propose() | Approve():
            yield from message_parts.proposal_paragraphs(change)
        case _:
            yield from message_parts.request_paragraphs(change)


def replaces_source(before: Placement, after: Placement) -> bool:
    """Tell whether a resize changes no number, and brings a placement to another version of its source."""
    number = (before.replicas, before.shape.group_size) == (after.replicas, after.shape.group_size)
    return number and _digest_of(before) not in ("", _digest_of(after))


def _digest_of(placement: Placement) -> str:
    return placement.made_from.digest if placement.made_from is not None else ""


def _taken_up(before: Placement, after: Placement) -> str:
    """Say that something else is deployed from here on than before, which the number of replicas does not tell."""
    if before.made_from is not None and after.made_from is not None and _digest_of(before) != _digest_of(after):
        told = before.made_from.images == after.made_from.images or replaces_source(before, after)
        images = "" if told else f", with {after.made_from.images} in place of {before.made_from.images}"
        texts = [_LONG_VERSION.sub(r"\1", each.text) for each in (after.made_from, before.made_from)]
        return f"It is made from {texts[0]} now, and was from {texts[1]}{images}."
    if before.template_version in ("", after.template_version):
        return ""
    return (
        f"Its template has changed, from {before.template_version} to {after.template_version}; that is taken up now"
        f"{', as far as it can be' if after.kept else ''}."
    )


def _kept(placement: Placement) -> str:
    """Say what the resize has left as it was; a new placement has it as the template says."""
    return f"{sentence(placement.kept)} The next placement takes it up." if placement.kept else ""


def _because(why: EndReason, detail: str) -> str:
    text = as_clause(detail)
    return f"{_WHY[why]}: {text}." if text else f"{_WHY[why]}."


def _choice(choice: Choice | None, refused: Sequence[Refusal]) -> str:
    """Say which cluster was taken and which were not, a handful of them by name."""
    sentences: list[str] = []
    if choice is not None:
        facts = [f"{amount} free" for amount in amounts(choice.free)]
        facts += [f"{amount} on nodes to be added" for amount in amounts(choice.addable)]
        if choice.fits:
            facts.append(f"{count(choice.fits, 'replica')} {'fits' if choice.fits == 1 else 'fit'}")
        if choice.limit is not None:
            facts.append(f"at most {choice.limit} by policy")
        if choice.price_per_gpu_hour is not None:
            facts.append(f"{choice.price_per_gpu_hour:.2f} $/GPU-h")
        if choice.because:
            facts.append(choice.because)
        if choice.scores:
            facts.append(f"score {describe_scores(choice.scores)}")
        sentences.append(f"{_at(choice)} chosen: {', '.join(facts)}")
    sentences += [f"{_at(refusal)} refused: {as_clause(refusal.message)}" for refusal in refused[:MAX_REFUSALS]]
    more = len(refused) - MAX_REFUSALS
    if more > 0:
        sentences[-1] += f", and {more} more"
    return f"{'. '.join(sentences)}." if sentences else ""


def held(restraint: Restraint | None) -> str:
    """Describe a restraint and its end; the commit gives the reason."""
    if restraint is None:
        return ""
    until = format_time(restraint.until)
    if restraint.kind is RestraintKind.HOLD:
        return f"Nothing new on {_restraint_scope(restraint)} until {until}, or until the demand has gone once."
    if restraint.kind is RestraintKind.TURN:
        return f"Beside others of its priority it waits for room since {until}."
    return f"Nothing new on {_restraint_scope(restraint)} until {until}."


def _since(restraint: Restraint) -> str:
    return f"held back on {_restraint_scope(restraint)} since {format_time(restraint.since)}"
