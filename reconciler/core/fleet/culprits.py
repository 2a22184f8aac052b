"""The file at which the assembly of all files fails, where it fails in a way that nothing foresaw.

Files meet each other in the assembly, so that no single step of it belongs to one file. What fails is the first file,
in an order in which the innocent come first, with which those before it cannot be assembled. With a bound of 2^10 files
that takes ten assemblies, which are paid for only then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence

from reconciler.core.fleet.file import ParsedFile, Value
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
from reconciler.model.kubernetes.object_schema import CustomKind

_ORDER: Sequence[type[Value]] = (
    FleetFile,
    WorkloadKindFile,
    Whitelist,
    CustomKind,
    ClusterFile,
    WorkspaceFile,
    GprTemplateFile,
    WorkspacePolicyFile,
    BindingFile,
    BurstPolicyFile,
    TemplateDraft,
    WorkloadSpreadFile,
    RequestDraft,
)
"""Kinds in the order in which they refer to each other: what a tenant writes comes last."""


def culprit(
    files: Mapping[str, ParsedFile], fails: Callable[[Mapping[str, ParsedFile]], bool], trusted: Collection[str]
) -> str:
    """Return the path of the file at which an assembly `fails`; `trusted` are files that were assembled before."""
    paths = sorted(files, key=lambda path: (path not in trusted, _rank(files[path]), path))
    first = bisect_left(
        range(1, len(paths)), True, key=lambda number: fails({path: files[path] for path in paths[:number]})
    )
    return paths[first]


def _rank(file: ParsedFile) -> int:
    """Return the place of a file in the order: that of its last kind, since its objects stand or fall together."""
    return max((_ORDER.index(type(declared.value)) for declared in file.objects), default=0)
