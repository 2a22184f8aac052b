"""What is kept of one file of the fleet repository, whatever its path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from reconciler.core.fleet.kruise_whitelist import Whitelist
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.schema.egs.gpr import GprTemplateFile
from reconciler.core.schema.egs.gpr_binding import BindingFile, WorkspacePolicyFile
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.fleet import ClusterFile, FleetFile
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.workloadkind import WorkloadKindFile
from reconciler.core.schema.workloadspread import WorkloadSpreadFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.core.schema.yaml import Document
from reconciler.errors import Problem, Severity
from reconciler.text.findings import Finding, Loc

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
    | WorkloadSpreadFile
    | Whitelist
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One object that a file declares, as far as it can be understood alone.

    `root` is where it stands in its document: not empty for the items of a List.
    """

    value: Value
    document: Document
    root: Loc = ()

    @property
    def line(self) -> int:
        """The line on which it begins."""
        return self.document.line(self.root)

    def problem(self, finding: Finding, path: str) -> Problem:
        """Place a finding about this object in its file."""
        below = replace(finding, loc=(*self.root, *finding.loc))
        return below.problem(path=path, line=self.document.line(below.loc))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """The objects of one file and everything that is wrong within it. The problems have no path yet.

    `mentioned` are the names and kinds that a broken file seems to declare, so that nobody is told that they are
    missing; of a good file it is empty. `blank` tells that nothing at all is in the file, not even something foreign.
    """

    objects: tuple[Declared, ...] = ()
    problems: tuple[Problem, ...] = ()
    mentioned: frozenset[str] = frozenset()
    blank: bool = False

    @property
    def broken(self) -> bool:
        """Whether an error keeps the whole file out of force."""
        return any(problem.severity is Severity.ERROR for problem in self.problems)
