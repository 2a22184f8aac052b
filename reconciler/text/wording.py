"""Amounts, names and foreign texts in sentences.

Commit messages and terminal lines quote unvalidated texts: a scheduler's message, a node label, the reason that a
person gave. The result of `sanitize` is one printable line without credentials that cannot pass for a trailer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from reconciler.errors import replace_unseen
from reconciler.model.capacity import CLASS_PREFIX, WHOLE, GpuSlices, SliceKind
from reconciler.model.rollout import MAX_MESSAGE
from reconciler.model.units import ONE, Resources, format_quantity
from reconciler.text.redaction import redacted

WIDTH = 100
"""Columns of a commit message's body."""

MAX_TEXT = 300
"""Most characters of a quoted text; the rest is in the logs of its author."""

_TRAILER = re.compile(r"(?i)\boverspill-(?=[a-z0-9-]{0,64}+\s?:)")
_MODEL = re.compile(r"gpu[.-]?(product|model|name|type)|accelerator(?!.{0,253}count)")
_PARTITION = re.compile(r"[a-z]px_nps[0-9]+")
_END = (".", "!", "?", "…")


def sanitize(text: str, limit: int = MAX_TEXT) -> str:
    """Make a text one printable line of at most `limit` characters that forges no trailer.

    Line breaks, escape sequences, direction marks and whatever stays unseen become spaces, and spaces are folded.
    Credentials are redacted first, since a truncated one might not be recognised.
    """
    text = replace_unseen(redacted(text), lambda _: " ")
    text = _TRAILER.sub("overspill ", " ".join(text.split()))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def engine_message(message: object) -> str:
    """Put an engine's message on one line, redact credentials, and shorten it."""
    line = " ".join(redacted(str(message or "")).split())
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"


def as_clause(text: str) -> str:
    """Sanitize a text for the middle of a sentence: without the full stop at its end."""
    return sanitize(text).rstrip(". ")


def sentence(text: str) -> str:
    """Make a text a sentence: sanitized, with a capital first letter and a full stop; empty stays empty.

    A first word with digits, dashes or dots in it is a name (``worker-2``) and keeps its small letter.
    """
    text = sanitize(text)
    if not text:
        return ""
    first = text.split(" ", 1)[0].rstrip(",:;.")
    if first.isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith(_END) else f"{text}."


def wrap_text(text: str, width: int = WIDTH) -> str:
    """Wrap a one-line text at spaces; a word longer than the width keeps a line of its own."""
    if len(text) <= width:
        return text
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        if not line:
            line = word
        elif len(line) + 1 + len(word) <= width:
            line = f"{line} {word}"
        else:
            lines.append(line)
            line = word
    lines.append(line)
    return "\n".join(lines)


_PLURALS = {"is": "are", "has": "have", "goes": "go", "does": "do", "was": "were"}
"""The verbs whose form for several is not that for one without its s."""


def count(number: int, noun: str) -> str:
    """Write ``1 replica``, ``3 replicas``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def conjugate(number: int, verb: str) -> str:
    """Return the verb of a subject of this number, from its form for one: ``has`` or ``have``."""
    return verb if number == 1 else _PLURALS.get(verb, verb.removesuffix("s"))


def join_names(names: Iterable[str], limit: int = 5) -> str:
    """Write ``a``, ``a and b``, ``a, b and c``, or the first few and ``and 12 more``."""
    shown = list(names)
    if len(shown) > limit:
        shown = [*shown[:limit], f"{len(shown) - limit} more"]
    if len(shown) < 2:  # noqa: PLR2004 -- one name needs no "and"
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def is_gpu(resource: str) -> bool:
    """Return whether a resource is a GPU or a part of a GPU, by the names of vendors' device plugins and DRA classes.

    ``nvidia.com/gpu``, ``nvidia.com/gpu.shared`` (time slices), ``nvidia.com/mig-1g.10gb``, ``amd.com/gpu``,
    ``amd.com/cpx_nps4`` (partitions), ``gpu.intel.com/i915``, ``gpu.intel.com/xe``. Intel's ``xe_monitoring`` is no
    GPU, and ``koordinator.sh/gpu`` counts percents of them, as `core.pods.gpu_parts` has it.
    """
    vendor, _, kind = resource.rpartition("/")
    if vendor == "koordinator.sh":
        return False
    return (
        kind == "gpu"
        or kind.startswith(("gpu.", "mig-", "mig."))
        or (vendor == "amd.com" and _PARTITION.fullmatch(kind) is not None)
        or (vendor == "gpu.intel.com" and kind in {"i915", "xe"})
    )


def amounts(resources: Resources) -> list[str]:
    """Write amounts for messages, GPUs first: ``6 GPUs``, ``2 nvidia.com/mig-1g.5gb``, ``64Gi memory``.

    Devices of a class are ``4 gpu.nvidia.com devices``.
    """
    names = sorted(resources.amounts, key=lambda name: (not is_gpu(name), name))
    whole = [name for name in names if name.endswith("/gpu")]
    phrases: list[str] = []
    for name in names:
        amount = format_quantity(resources.amounts[name])
        if whole == [name]:
            phrases.append(f"{amount} GPU" if amount == "1" else f"{amount} GPUs")
        elif name.startswith(CLASS_PREFIX):
            phrases.append(f"{amount} {sanitize(resource_label(name), 80)} {'device' if amount == '1' else 'devices'}")
        else:
            phrases.append(f"{amount} {sanitize(name, 80)}")
    return phrases


def free_amounts(resources: Resources, slices: GpuSlices | None) -> list[str]:
    """Write free amounts as `amounts` does, and slices that stand for GPUs as what they are.

    ``4 time slices of 1 GPU``, or ``12 GPUs or time slices`` where there are whole ones too.
    """
    phrases = amounts(resources)
    if slices is None:
        return phrases
    names = sorted(resources.amounts, key=lambda name: (not is_gpu(name), name))
    return [_sliced(name, phrase, resources, slices) for name, phrase in zip(names, phrases, strict=True)]


def _sliced(resource: str, phrase: str, resources: Resources, slices: GpuSlices) -> str:
    vendor, _, kind = resource.rpartition("/")
    if kind not in ("gpu", "gpu.shared") and vendor != "gpu.intel.com":
        return phrase
    if slices.mixed:
        return f"{phrase} or {slices.kind}s"
    return describe_slices(resources.amounts[resource] // ONE, slices.kind, slices.share)


def describe_slices(number: int, kind: SliceKind, share: Fraction) -> str:
    """Write ``4 time slices of 1 GPU``, without the GPUs where the size of a slice is unknown."""
    return count(number, kind) if share == WHOLE else f"{count(number, kind)} of {count(ceil(number * share), 'GPU')}"


def resource_label(resource: str) -> str:
    """Name a resource in messages: a DeviceClass by its name alone."""
    return resource.removeprefix(CLASS_PREFIX)


def models_in_selector(selector: Iterable[tuple[str, str]]) -> list[str]:
    """Return the GPU models in a node selector: the values of labels such as ``nvidia.com/gpu.product``."""
    return [sanitize(value, 80) for key, value in selector if value and is_gpu_model_label(key)]


def is_gpu_model_label(label: str) -> bool:
    """Return whether the values of a node label are models of GPUs."""
    return _MODEL.search(label.rpartition("/")[2]) is not None or label == "gpu.intel.com/product"
