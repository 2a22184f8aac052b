"""A rule of a project's webhook, and the object that it is asked about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.paths import at, located
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.workload import Json
from reconciler.text.findings import Finding

_PERCENT = re.compile(r"([0-9]{1,9})%")
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LONGEST_LABEL = 63
"""Characters of the name of a Service, and of any other DNS label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSubject:
    """An object that is about to be created. A value with an expression is unknown until it is rendered."""

    manifest: Mapping[str, Json]
    kinds: Kinds
    """WorkloadKinds of the fleet repository."""
    rendered: bool
    """Whether expressions have been rendered already, so that braces are only braces."""

    @property
    def kind(self) -> str:
        """The ``group/Kind``."""
        return group_kind(self.manifest)

    @property
    def version(self) -> str:
        """The version, without the group."""
        return str(self.manifest.get("apiVersion", "")).rpartition("/")[2]

    def states(self, *path: str) -> bool:
        """Return whether there is a value at a path, be it an expression."""
        return at(self.manifest, path) is not None

    def is_open(self, *path: str) -> bool:
        """Return whether an expression decides the value at a path."""
        value = at(self.manifest, path)
        return not self.rendered and isinstance(value, str) and has_expression(value)

    def get(self, *path: str) -> Json:
        """Return the value at a path; None where there is none, and for an expression."""
        return None if self.is_open(*path) else at(self.manifest, path)

    def text(self, *path: str) -> str | None:
        """Return the text at a path; None for any other value."""
        value = self.get(*path)
        return value if isinstance(value, str) else None

    def number(self, *path: str, default: int | None = None) -> int | None:
        """Return the whole number at a path, the `default` where there is no value; None for any other value."""
        value = at(self.manifest, path)
        return default if value is None else value if type(value) is int else None

    def mapping(self, *path: str) -> Mapping[str, Json]:
        """Return the mapping at a path; an empty one where there is none."""
        value = at(self.manifest, path)
        return value if isinstance(value, Mapping) else {}

    def items(self, *path: str) -> Iterator[tuple[str, ...]]:
        """Yield the path of each item of a list that is a mapping."""
        value = at(self.manifest, path)
        for index, item in enumerate(value if isinstance(value, list) else ()):
            if isinstance(item, Mapping):
                yield (*path, str(index))

    def texts(self, *path: str) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield each text of a list with its path; those with an expression are left out."""
        value = at(self.manifest, path)
        for index in range(len(value) if isinstance(value, list) else 0):
            text = self.text(*path, str(index))
            if text is not None:
                yield (*path, str(index)), text

    def finding(self, path: Path, message: str, hint: str = "") -> Finding:
        """Make a finding about the value at a path."""
        return Finding(loc=located(self.manifest, path), message=message, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRule:
    """What a webhook, or a CEL rule of a CustomResourceDefinition, refuses."""

    refuses: str
    """What it refuses, as a phrase for the documentation."""
    source: str
    """The file of the project that it was read from."""
    check: Callable[[AdmissionSubject], Iterator[Finding]]
    """Yields a finding for each refusal, with a place in the object."""
    kinds: frozenset[str] = frozenset()
    """The kinds as ``group/Kind`` that it holds for; empty for all."""
    since: str = ""
    """The first release that refuses it, where older ones that are in use do not; empty for all."""

    def findings(self, subject: AdmissionSubject) -> Iterator[Finding]:
        """Yield what the rule refuses of an object."""
        if not self.kinds or subject.kind in self.kinds:
            yield from self.check(subject)


def is_dns_1035(name: str) -> bool:
    """Return whether a text can be the name of a Service (RFC 1035)."""
    return len(name) <= LONGEST_LABEL and _DNS_1035.fullmatch(name) is not None


def scaled(value: Json, total: int | None, *, up: bool) -> int | None:
    """Return a number, or a percentage of a total as a number; None where it is neither, or the total is unknown."""
    if type(value) is int:
        return value
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent is None:
        return None
    share = int(percent[1])
    if not share:
        return 0
    if total is None:
        return None
    return -(-total * share // 100) if up else total * share // 100


def is_number_or_percent(value: Json, most: int | None = 100) -> bool:
    """Return whether a value is a whole number from 0 on, or a percentage up to `most`."""
    if type(value) is int:
        return value >= 0
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return percent is not None and (most is None or int(percent[1]) <= most)
