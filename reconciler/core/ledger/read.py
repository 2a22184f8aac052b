"""The Ledger from the files of the output branch: its records, and manual edits.

Files that are no records are foreign and passed over. An unreadable record blocks its own workload and nothing else
(docs/background/concepts.md, "Promises").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.bulkhead import Seam, attempt
from reconciler.core.engines import DIRECTORIES, PARTS, engine
from reconciler.core.ledger.placement_record import digest, read_placement, read_spec
from reconciler.core.ledger.proposal_record import read_approval, read_proposal
from reconciler.core.ledger.request_record import read_request, request_path
from reconciler.core.ledger.restraints import read_restraints
from reconciler.errors import Bug, InvalidInput, Problem
from reconciler.model.approval import Approval, BurstProposal
from reconciler.model.ids import CommitId, TemplateName, WorkloadId, WorkspaceName, is_name
from reconciler.model.ledger import Drift, Ledger, Placements
from reconciler.model.placement import Origin, Placement, Restraint
from reconciler.model.request import RequestRecord
from reconciler.model.sorted_map import SortedMap
from reconciler.model.tree import FileChange

ROOTS = ("clusters", "ledger")
"""The directories of the output branch that hold records."""

_PLACEMENT = re.compile(r"(clusters/[^/]+/[^/]+)/placement\.yaml")
_LEDGER = re.compile(r"ledger/([^/]+)/([^/]+)\.yaml")
_REQUEST = re.compile(r"ledger/([^/]+)/requests/(?:.+/)?([^/]+)\.yaml")
"""Also matches moved records, at any depth: the move is reported, and the request blocked meanwhile."""
_PROPOSAL = re.compile(r"ledger/([^/]+)/proposals/([^/]+)\.yaml")
_APPROVAL = re.compile(r"ledger/([^/]+)/approvals/([^/]+)-[0-9a-f]+\.yaml")
_BESIDE = re.compile(rf"(clusters/[^/]+)/(?:{'|'.join(map(re.escape, DIRECTORIES))})/([^/]+)\.yaml")
_BESIDE_MARKS = tuple(f"/{directory}/" for directory in DIRECTORIES)
_ANCHOR = re.compile(rf"clusters/[^/]+/(?:{'|'.join(map(re.escape, DIRECTORIES))})/_anchor\.yaml")
_INSIDE = re.compile(r"(clusters/[^/]+/[^/]+)/")
_NOTE = re.compile(
    rb"""^[ \t]+["']?overspill\.dev/(workspace|workload|origin)["']?:[ \t]*["']?([-a-z0-9]+)["']?[ \t\r]*$""",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestraintsRecord:
    """The restraints of one ledger file."""

    workload: WorkloadId
    restraints: tuple[Restraint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorRecord:
    """A file that keeps an engine's directory of a cluster alive; its content has no meaning."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRecord:
    """An unreadable record."""

    problems: tuple[Problem, ...]
    # The workload of the record, if it can be determined.
    workload: WorkloadId | None
    # Whether earlier versions of the file have been read for it too.
    traced: bool = False


Record = Placement | RestraintsRecord | RequestRecord | BurstProposal | Approval | AnchorRecord | BrokenRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRecords:
    """Every record of one commit: placements by directory, broken files by path."""

    placements: Placements = field(default_factory=Placements)
    requests: SortedMap[WorkloadId, RequestRecord] = field(default_factory=SortedMap)
    restraints: SortedMap[WorkloadId, tuple[Restraint, ...]] = field(default_factory=SortedMap)
    proposals: SortedMap[WorkloadId, BurstProposal] = field(default_factory=SortedMap)
    approvals: SortedMap[str, Approval] = field(default_factory=SortedMap)
    broken: SortedMap[str, BrokenRecord] = field(default_factory=SortedMap)
    anchored: frozenset[str] = frozenset()

    @property
    def untraced(self) -> dict[str, BrokenRecord]:
        """The broken placements whose workload is unknown and not looked for yet, by path."""
        return {path: record for path, record in self.broken.items() if record.workload is None and not record.traced}

    def changed(self, files: Mapping[str, Record | None]) -> LedgerRecords:
        """Return the records after changes of files, by path; None for a deleted file."""
        placements: dict[str, Placement] = {}
        restraints: dict[WorkloadId, tuple[Restraint, ...]] = {}
        requests: dict[WorkloadId, RequestRecord] = {}
        proposals: dict[WorkloadId, BurstProposal] = {}
        approvals: dict[str, Approval] = {}
        broken: dict[str, BrokenRecord] = {}
        for path, record in files.items():
            if isinstance(record, Placement):
                placements[path.removesuffix("/placement.yaml")] = record
            elif isinstance(record, RestraintsRecord):
                restraints[record.workload] = record.restraints
            elif isinstance(record, RequestRecord):
                requests[record.workload] = record
            elif isinstance(record, BurstProposal):
                proposals[record.workload] = record
            elif isinstance(record, Approval):
                approvals[path] = record
            elif isinstance(record, BrokenRecord):
                broken[path] = record
        owners = ((path, _workload_of(path)) for path in files)
        # A moved request is gone from its own path; if a copy lies elsewhere, the original still stands.
        named = [
            workload
            for path, workload in owners
            if workload is not None and (not workload.request or path == request_path(workload))
        ]
        written = [workload for workload in named if not workload.request]
        asked = [workload for workload in named if workload.request]
        proposed = [workload for path in files if (workload := _named(_PROPOSAL, path)) is not None]
        approved = [path for path in files if _APPROVAL.fullmatch(path) is not None]
        anchored = {record.path for record in files.values() if isinstance(record, AnchorRecord)}
        gone = [path for path, record in files.items() if record is None]
        return LedgerRecords(
            placements=self.placements.changed(placements, (path.removesuffix("/placement.yaml") for path in files)),
            requests=self.requests.changed(requests, asked) if asked else self.requests,
            restraints=self.restraints.changed(restraints, written) if written else self.restraints,
            proposals=self.proposals.changed(proposals, proposed) if proposed else self.proposals,
            approvals=self.approvals.changed(approvals, approved) if approved else self.approvals,
            broken=self.broken.changed(broken, files) if self.broken or broken else self.broken,
            anchored=self.anchored.difference(gone) | anchored,
        )


def approved_workload(path: str) -> WorkloadId | None:
    """Return the workload of which a path of the output branch holds an approval; None for any other path."""
    return _named(_APPROVAL, path)


def is_record(path: str) -> bool:
    """Return whether a path of the output branch may hold a record.

    Unprintable paths are foreign: no record has such a name, and no message could print it.
    """
    return path.isprintable() and (
        _PLACEMENT.fullmatch(path) is not None
        or _LEDGER.fullmatch(path) is not None
        or _REQUEST.fullmatch(path) is not None
        or _PROPOSAL.fullmatch(path) is not None
        or _APPROVAL.fullmatch(path) is not None
        or _ANCHOR.fullmatch(path) is not None
    )


def directory_of(path: str) -> str:
    """Return the directory of the placement that a file belongs to, empty if none.

    The file lies in that directory, or in an engine's own directory of the cluster, under the placement's name.
    """
    beside = _BESIDE.fullmatch(path) if any(mark in path for mark in _BESIDE_MARKS) else None
    if beside is not None:
        return f"{beside[1]}/{beside[2]}" if is_name(beside[2]) else ""
    inside = _INSIDE.match(path)
    return inside[1] if inside is not None else ""


def placement_paths(directory: str) -> tuple[str, ...]:
    """Return the paths below which all files of a placement lie, from its directory."""
    cluster, _, name = directory.rpartition("/")
    return directory, *(f"{cluster}/{own}/{name}.yaml" for own in DIRECTORIES)


def path_in_cluster(path: str) -> str:
    """Return the path of a file below its cluster's directory, as engines and the digest use it."""
    return path.split("/", 2)[2]


def is_ours(path: str) -> bool:
    """Return whether the daemon writes files of placements at this path."""
    directory = directory_of(path)
    inside = path.removeprefix(f"{directory}/")
    return bool(directory) and (inside == path or inside.partition("/")[0] in PARTS)


def read_record(data: bytes, path: str) -> Record:
    """Read one record; an unreadable one is returned as a value too."""
    if _ANCHOR.fullmatch(path) is not None:
        return AnchorRecord(path=path)
    try:
        record = attempt(Seam.RECORD, path, lambda: _read_record(data, path))
    except InvalidInput as error:
        return _broken_record(data, path, error.problems or (Problem(path=path, message=str(error)),))
    return _broken_record(data, path, (record.problem(path),)) if isinstance(record, Bug) else record


def _read_record(data: bytes, path: str) -> Record:
    if _PLACEMENT.fullmatch(path) is not None:
        return read_placement(data, path)
    if _REQUEST.fullmatch(path) is not None:
        return read_request(data, path)
    if _PROPOSAL.fullmatch(path) is not None:
        return read_proposal(data, path)
    if _APPROVAL.fullmatch(path) is not None:
        return read_approval(data, path)
    workload, restraints = read_restraints(data, path)
    return RestraintsRecord(workload=workload, restraints=restraints)


def _broken_record(data: bytes, path: str, problems: tuple[Problem, ...]) -> BrokenRecord:
    return BrokenRecord(problems=problems, workload=_owner(path) or _annotated_workload(data))


def is_foreign_edit(placement: Placement, files: Mapping[str, bytes], changed: Collection[str]) -> bool:
    """Return whether all changed files of a placement are foreign.

    `files` are the contents of every path that `is_ours`, as the daemon left it, by path below the cluster's directory.
    A person's own manifest may be among them. The digest covers exactly the files of the daemon, so that it matches
    only if none of these has changed.
    """
    record = f"{placement.name}/placement.yaml"
    spec = read_spec(files[record], f"{placement.path}/placement.yaml")
    not_digested = {record, engine(placement.engine).marker_path(placement)}
    if not not_digested.isdisjoint(changed):
        return False
    left = {path: data for path, data in files.items() if path not in not_digested and path not in changed}
    return digest(left, placement, spec) == placement.digest


def edits_by_placement(changes: Iterable[FileChange]) -> dict[str, list[FileChange]]:
    """Group changes by the directory of their placement, if an existing file of ours was changed or deleted.

    Added files, and all files outside of ours, are foreign and no edits.
    """
    directories: dict[str, list[FileChange]] = {}
    for change in changes:
        directory = directory_of(change.path)
        if change.old is not None and is_ours(change.path):
            directories.setdefault(directory, []).append(change)
    return directories


def assemble_ledger(commit: CommitId, records: LedgerRecords, drifted: Sequence[Drift]) -> Ledger:
    """Make the Ledger of one commit.

    An edited placement is listed as the daemon left it, since that state was decided; it counts as readable even if the
    edit broke its record.
    """
    edited = {change.placement.path: change.placement for change in drifted if not change.removed}
    placements = records.placements.changed(edited) if edited else records.placements
    broken = [record for path, record in records.broken.items() if path.removesuffix("/placement.yaml") not in edited]
    return Ledger(
        commit=commit,
        placements=placements,
        requests=records.requests,
        restraints=records.restraints,
        proposals=records.proposals,
        approvals=records.approvals,
        drifted=tuple(drifted),
        problems=tuple(problem for record in broken for problem in record.problems),
        blocked=frozenset(record.workload for record in broken if record.workload is not None),
        anchored=records.anchored,
    )


def _workload_of(path: str) -> WorkloadId | None:
    """Return the workload of a ledger file, which holds its restraints or its request."""
    match = _LEDGER.fullmatch(path) or _REQUEST.fullmatch(path)
    if match is None or not (is_name(match[1]) and is_name(match[2])):
        return None
    return WorkloadId(WorkspaceName(match[1]), TemplateName(match[2]), request=match.re is _REQUEST)


def _owner(path: str) -> WorkloadId | None:
    """Return the workload that a ledger file of any kind is about, by its path."""
    return _workload_of(path) or _named(_PROPOSAL, path) or _named(_APPROVAL, path)


def _named(pattern: re.Pattern[str], path: str) -> WorkloadId | None:
    """Return the workload that the path of a proposal or an approval names."""
    match = pattern.fullmatch(path)
    if match is None or not (is_name(match[1]) and is_name(match[2])):
        return None
    return WorkloadId(WorkspaceName(match[1]), TemplateName(match[2]))


def _annotated_workload(data: bytes) -> WorkloadId | None:
    """Return the workload that the annotations of an unreadable record name."""
    notes = {match[1]: match[2].decode() for match in _NOTE.finditer(data)}
    workspace, workload = notes.get(b"workspace", ""), notes.get(b"workload", "")
    if not (is_name(workspace) and is_name(workload)):
        return None
    return WorkloadId(WorkspaceName(workspace), TemplateName(workload), request=notes.get(b"origin") == Origin.REQUEST)
