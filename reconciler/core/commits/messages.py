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
from reconciler.model.action import TRAITS, Action
from reconciler.model.capacity import WHOLE
from reconciler.model.end_reason import ENDS, EndReason
from reconciler.model.ids import CommitId
from reconciler.model.placement import Placement, Restraint, RestraintKind, place_name
from reconciler.model.plan import Change, Choice, Refusal, replaces_source
from reconciler.model.tree import LoggedCommit
from reconciler.model.units import format_duration
from reconciler.text.scores import describe_scores
from reconciler.text.timestamps import format_time
from reconciler.text.wording import (
    amounts,
    as_clause,
    conjugate,
    count,
    free_amounts,
    join_names,
    sanitize,
    sentence,
    wrap_text,
)

MAX_REFUSALS = 5
"""Refused clusters that one message names; `explain` tells all of them."""

_LONG_VERSION = re.compile(r"\b((?:sha256-)?[0-9a-f]{12})[0-9a-f]{28,52}\b")
"""A commit or a digest; the trailer has the whole of it."""


def subject(change: Change) -> str:
    """Write the first line of a change's commit message."""
    if change.action is Action.PLACE:
        return placed(change.placement)
    if change.action is Action.REVERT:
        return f'Revert "{placed(change.placement)}"'
    verb = "update" if change.is_update else TRAITS[change.action].verb
    return f"{verb}({change.workload}): {_summary(change)}"


def _summary(change: Change) -> str:
    """Say in the subject what a change does."""
    match change.action:
        case Action.EXTEND:
            return f"{_replicas_clause(change.placement)} until {format_time(change.placement.expires_at)}"
        case Action.MOVE:
            return f"{count(change.replicas_before, 'replica')} from {_at(change.former)} to {_at(change.placement)}"
        case Action.RESIZE if not change.is_update:
            return f"{replica_count.describe_resize(change.former, change.placement)} on {_at(change.placement)}"
        case Action.RESTORE:
            return f"{change.placement.name} on {_at(change.placement)}"
        case Action.RELEASE:
            return join_names(sorted({_restraint_scope(restraint) for restraint in change.restraints}))
        case Action.HOLD if change.restraint is not None:
            return f"{_restraint_scope(change.restraint)} until {format_time(change.restraint.until)}"
        case _ if change.proposal is not None:
            return message_parts.proposal_summary(change, change.proposal)
        case _ if change.record is not None and change.is_of_request:
            return message_parts.request_summary(change, change.record)
        case _:
            return _replicas_clause(change.placement)


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
    if change.action is Action.REVERT and history:
        title = f'Revert "{sanitize(history[-1].subject)}"'
    paragraphs = [title]
    body = "\n".join(map(wrap_text, reason_paragraphs(change)))
    if body:
        paragraphs.append(body)
    if change.ended is not None and history:
        paragraphs.append("\n".join(f"This reverts commit {commit.id}." for commit in history))
    paragraphs.append(trailers(change, source, demand, request_id))
    return "\n\n".join(paragraphs) + "\n"


def line(change: Change, title: str = "") -> str:
    """Tell a change in one line of a terminal: the subject of its commit, and in brackets why.

    `title` is the subject that the commit of a Revert has; by default that of a placement which was never changed.
    """
    if change.action is not Action.REVERT:
        return _with(subject(change), _line_reason(change).removeprefix("; "))
    title, replicas, reason = title or subject(change), _replicas_clause(change.placement), _line_reason(change)
    return _with(title, reason if _names(title, replicas) else f"{replicas}; {reason}")


def _line_reason(change: Change) -> str:
    """Say in a clause why a change is made, and what its cluster was taken for."""
    if change.shortage is not None and change.action is Action.PLACE:
        reason = message_parts.describe_wait(change.shortage, change.placement)
    else:
        why = change.why if change.ended is not None else None
        reason = ": ".join(filter(None, (why, as_clause(message_parts.reason(change)))))
    asks = "" if change.shortage is None else message_parts.describe_signals(change.shortage, change.placement)
    kept = f"; {change.placement.kept}" if change.action is Action.RESIZE and change.placement.kept else ""
    return f"{reason}{asks}{reason_clause(change.choice)}{kept}"


def reason_clause(choice: Choice | None) -> str:
    """Say after a semicolon what a cluster was taken `because` of; empty where its place alone spoke for it."""
    return f"; {choice.because}" if choice is not None and choice.because else ""


def _names(title: str, clause: str) -> bool:
    """Return whether a title says so much of a placement: not ``13 replicas on worker-20`` for its tail."""
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
    reason = as_clause(message_parts.reason(change))
    if change.ended is not None and isinstance(change.why, EndReason):
        yield f"{': '.join(filter(None, (ENDS[change.why].words, reason)))}."
    else:
        yield sentence(reason)
    match change.action:
        case Action.PLACE | Action.RESIZE if change.shortage is not None:
            yield message_parts.describe_shortage(change.shortage, change.placement)
        case Action.EXTEND:
            moved = change.placement.expires_at - change.former.expires_at
            later = f"{format_duration(abs(moved))} {'later' if moved == abs(moved) else 'earlier'}"
            yield f"It ends {later} than {format_time(change.former.expires_at)}."
        case Action.MOVE if change.joined is not None:
            grown = change.placement.replicas
            yield f"It joins {change.joined.name} there, which grows to {grown} replicas."
        case Action.RELEASE:
            yield from (f"{restraint.placement}: {_since(restraint)}." for restraint in change.restraints)
        case Action.RESTORE:
            yield "To change what is deployed, change the template: the next resize takes it up."
            yield "To end a placement, delete its directory."
        case Action.RECEIVE:
            yield from map(sentence, change.notes)
        case Action.CLOSE:
            yield "It stays in the ledger, and nothing of it begins again."
        case Action.PROPOSE if change.proposal is not None and change.proposal_before is None:
            yield from message_parts.proposal_terms(change.proposal)
        case _:
            pass
    yield _choice(change.choice, change.refused)
    yield from _remarks(change)


def _remarks(change: Change) -> Iterable[str]:
    """Yield what else a change brings: another version, what stays as it was, and a restraint."""
    restrained = held(change.restraint)
    if change.action is Action.RESIZE:
        yield from (_taken_up(change.former, change.placement), _kept(change.placement), restrained)
    elif change.action is Action.MOVE:
        yield from (restrained, _taken_up(change.joined or change.former, change.placement), _kept(change.placement))
    else:
        yield restrained
    if change.action is Action.EXTEND and change.placement.kept != change.former.kept:
        yield _kept(change.placement)


def _taken_up(before: Placement, after: Placement) -> str:
    """Say that something else is deployed from here on than before, which the number of replicas does not tell."""
    if before.made_from is not None and after.made_from is not None and before.source_digest != after.source_digest:
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


def _choice(choice: Choice | None, refused: Sequence[Refusal]) -> str:
    """Say which cluster was taken and which were not, a handful of them by name."""
    sentences: list[str] = []
    if choice is not None:
        facts = [f"{amount} free" for amount in free_amounts(choice.free, choice.slices)]
        facts += [f"{amount} on nodes to be added" for amount in amounts(choice.addable)]
        if choice.fits:
            facts.append(f"{count(choice.fits, 'replica')} {conjugate(choice.fits, 'fits')}")
        if choice.limit is not None:
            facts.append(f"at most {choice.limit} by policy")
        if choice.price_per_gpu_hour is not None:
            facts.append(f"{choice.price_per_gpu_hour:.2f} $/GPU-h{_slice_price(choice)}")
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


def _slice_price(choice: Choice) -> str:
    """Write what a slice costs of the price of a GPU; empty where a replica gets whole GPUs, or may."""
    slices, price = choice.slices, choice.price_per_gpu_hour
    if slices is None or price is None or slices.paid_share == WHOLE:
        return ""
    return f" ({float(price * slices.paid_share):.2f} a slice)"


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
