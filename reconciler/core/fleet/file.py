"""The content of one file of the fleet repository, whatever its path."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TypeAlias

from reconciler.core.fleet.kruise_whitelist import Whitelist
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.schema.egs.gpr import GprTemplateFile
from reconciler.core.schema.egs.gpr_binding import BindingFile, WorkspacePolicyFile
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.fleet import ClusterFile, FleetFile
from reconciler.core.schema.notification import NotificationFile
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.workloadkind import WorkloadKindFile
from reconciler.core.schema.workloadspread import WorkloadSpreadFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.core.schema.yaml import Document
from reconciler.errors import Problem, Severity
from reconciler.model.kubernetes.object_schema import CustomKind
from reconciler.model.workload import WorkloadRef
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.wording import join_names

Value: TypeAlias = (
    FleetFile
    | ClusterFile
    | WorkspaceFile
    | BurstPolicyFile
    | TemplateDraft
    | RequestDraft
    | GprTemplateFile
    | BindingFile
    | WorkspacePolicyFile
    | WorkloadKindFile
    | NotificationFile
    | WorkloadSpreadFile
    | Whitelist
    | CustomKind
)

_SHOWN = 4096
"""Bytes at the beginning of a file by which it is recognised."""
_KIND = re.compile(rb"""^["']?kind["']?[ \t]*:[ \t]*["']?([A-Za-z][A-Za-z0-9]{0,62})\b""", re.MULTILINE)
_MOST_KINDS = 3
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/[^\n]{0,100}\noid sha256:([0-9a-f]{64})\n")
_BEGINNINGS = (
    (b"version https://git-lfs.github.com/spec/", "is a Git LFS pointer"),
    (b"# git-annex", "is a pointer of git-annex"),
    (b"$ANSIBLE_VAULT", "is encrypted by ansible-vault"),
    (b"\0GITCRYPT", "is encrypted by git-crypt"),
    (b"age-encryption.org/", "is encrypted by age"),
    (b"-----BEGIN AGE ENCRYPTED FILE", "is encrypted by age"),
    (b"-----BEGIN PGP MESSAGE", "is encrypted by PGP"),
    (b"\xff\xfe", "is UTF-16, not UTF-8"),
    (b"\xfe\xff", "is UTF-16, not UTF-8"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """An object of a file, checked as far as its own document allows."""

    value: Value
    document: Document
    # The location of the object in its document: not empty for the items of a List.
    root: Loc = ()

    @property
    def line(self) -> int:
        """The line on which the object begins."""
        return self.document.line(self.root)

    def problem(self, finding: Finding, path: str) -> Problem:
        """Locate a finding about this object in its file."""
        below = replace(finding, loc=(*self.root, *finding.loc))
        return below.problem(path=path, line=self.document.line(below.loc))


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentSpread:
    """The target of a WorkloadSpread that is not in force, as far as it can be read."""

    namespace: str = ""
    """Empty for any."""
    name: str = ""
    """Empty for any workload of the namespace."""
    path: str = ""
    """Its file; empty where the file is the only one that counts."""

    def may_target(self, ref: WorkloadRef) -> bool:
        """Return whether the spread may govern a workload; one of which nothing can be read targets none."""
        return bool(self.namespace or self.name) and (
            self.namespace in ("", ref.namespace) and self.name in ("", ref.name)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentLimits:
    """The workspace of a WorkspacePolicy that is not in force, as far as it can be read."""

    workspace: str
    path: str = ""
    """Its file; empty where the file is the only one that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """The objects of one file, and every problem within it. The problems have no path yet."""

    objects: tuple[Declared, ...] = ()
    problems: tuple[Problem, ...] = ()
    # Names and kinds that a broken file seems to declare, so that they are not reported as missing. Empty for a good
    # file.
    mentioned: frozenset[str] = frozenset()
    # Targets of WorkloadSpreads that it seems to declare; while it is not in force, nothing is placed for them.
    spreads: tuple[AbsentSpread, ...] = ()
    # Workspaces whose WorkspacePolicy it seems to declare; while it is not in force, no GPR begins in them.
    limits: tuple[AbsentLimits, ...] = ()
    # Whether the file is empty: it holds not even a foreign object.
    blank: bool = False
    # Documents, or items of a List, that hold something else than an object of ours, each by its kind and name, or by a
    # digest; none for a file that is no YAML.
    foreign: tuple[str, ...] = ()
    # The SHA-256 of the content that a Git LFS pointer stands for; empty for any other file.
    pointer_to: str = ""
    # Whether anybody may read in it what it holds: not in a pointer, an encrypted or a binary file.
    readable: bool = True
    # What a file without objects holds, as a predicate: "is a Git LFS pointer".
    content: str = ""

    @property
    def broken(self) -> bool:
        """Whether an error keeps the whole file out of force."""
        return any(problem.severity is Severity.ERROR for problem in self.problems)


def pointed_content(data: bytes) -> str:
    """Return the SHA-256 of the content that a Git LFS pointer stands for; empty for anything else."""
    found = _POINTER.match(data[:_SHOWN])
    return found[1].decode() if found else ""


def describe_opaque(data: bytes) -> str:
    """Say what bytes are in which nobody can read what they hold, as a predicate; empty for any other.

    Example: ``is a Git LFS pointer``.
    """
    begin = data[:_SHOWN]
    for beginning, words in _BEGINNINGS:
        if begin.startswith(beginning):
            return words
    if b"\0" in begin:
        return "is binary" if begin.strip(b"\0") else "is nothing but null bytes"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    if begin.lstrip().startswith(b"<"):
        return "is a page of HTML or XML"
    return "is encrypted by SOPS" if b"sops" in data and b"ENC[" in data else ""


def describe_foreign(data: bytes) -> str:
    """Say what bytes are, or which kinds they hold, as a predicate: ``holds ConfigMap``."""
    if opaque := describe_opaque(data):
        return opaque
    begin = data[:_SHOWN]
    kinds = dict.fromkeys(match.decode() for match in _KIND.findall(begin))
    if kinds:
        return f"holds {join_names([shortened(kind) for kind in kinds][:_MOST_KINDS])}"
    return "holds nothing that has a kind of ours"
