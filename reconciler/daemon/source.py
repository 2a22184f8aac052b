"""The source branch in force: the files of a commit, with the last good version of broken ones."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TypeAlias

from reconciler.core.fleet.assemble import assemble_with_rejections, is_ignored, without_definitions_elsewhere
from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.moved_objects import GoneVersion, MovedObject, moved_objects
from reconciler.core.fleet.objects import Contest, Identity, identity
from reconciler.core.fleet.paths import FLEET_FILE, fleets_below
from reconciler.core.fleet.read_file import is_read, parse_file
from reconciler.core.fleet.sources.observed_contents import observed_contents
from reconciler.core.fleet.sources.plain_manifests import path_sources, read_source
from reconciler.core.fleet.standing_paths import (
    LostContent,
    directories_like_files,
    is_at,
    key,
    last_good_version,
    lost_contents,
    suspects,
)
from reconciler.core.fleet.unread_files import unread_entries
from reconciler.core.schema.yaml import MAX_BYTES, too_large
from reconciler.core.workloads.cluster_provides import observed_answers
from reconciler.daemon.gone_versions import GoneVersions, UnreadVersion
from reconciler.daemon.lost_objects import LostObjects
from reconciler.errors import Conflict, InvalidInput, Problem, Transient
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import BlobId, ClusterName, CommitId
from reconciler.model.manifest_source import PathSource, SourceContent, SourceContents, SourceKey, UnreadSource
from reconciler.model.policy import Desired
from reconciler.model.tree import EntryType, TreeEntry
from reconciler.ports import Repository
from reconciler.text.spelling import listed, suggested

_BATCH = 256
"""Blobs that are read at a time, so that a large repository is never in memory as a whole."""

_LOOKS = (20, 200)
"""Earlier versions of a file that are read, and their number where none of the first is good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """A version of a file."""

    blob: BlobId
    file: ParsedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """A commit in which no version in force is rejected."""

    desired: Desired
    in_force: Mapping[str, _Version]
    problems_of: Mapping[str, tuple[Problem, ...]]
    """The problems of files whose current version is not in force."""
    refused: frozenset[str]
    """The files of objects that have moved, and that cannot be in force where they were."""


def _fleets_below(current: Mapping[str, _Version]) -> Problem | None:
    """Report the fleets in directories of a commit; None where there is none, or the root is laid out as a fleet.

    The report takes the place of those of each file, which would say of one after the other that it is misplaced.
    """
    below = fleets_below({path for path, version in current.items() if version.file.objects or version.file.problems})
    if not below:
        return None
    return Problem(
        path=FLEET_FILE,
        message=f"no fleet repository begins at the root of the source branch, but in {listed(below)}",
        hint="name another repository with --repo, or give that directory a repository of its own",
    )


def missing_branch(repository: Repository, branch: str) -> InvalidInput:
    """Make the error for a source branch that the remote does not have, with the ways to one that it has."""
    names = sorted(repository.branch_names())
    near = names[0] if len(names) == 1 else suggested(branch, names)
    hint = (
        f"{f'try --source-branch {shlex.quote(near)}' if near else f'there are {listed(names)}'},"
        f" or push yours: `git push origin HEAD:{branch}`"
        if names
        else "the remote answers without any branch. If it is new: commit the files and push them to it, or begin them"
        " with `overspill init`. If it is not: look at the host, and whether the address still leads to it"
    )
    return InvalidInput(f"reading the fleet repository: its source branch {branch!r} does not exist ({hint})")


ObservedAnswers: TypeAlias = frozenset[tuple[ClusterName, Prerequisite, bool, tuple[str, ...]]]
"""Prerequisites of which an observation of a cluster says something else than its file."""


def _observed_parts(seen: ClusterObservation) -> tuple[object, ...]:
    """Return what an observation says of prerequisites; each is the same object while nothing in it changes."""
    return seen.api_versions, seen.device_classes, seen.runtime_classes, seen.queues


def _answers(desired: Desired, seen: Mapping[ClusterName, ClusterObservation]) -> ObservedAnswers:
    """Compare the prerequisites of all templates with the clusters as they are seen."""
    needed = frozenset(each for template in desired.templates.values() for each in template.prerequisites)
    return frozenset(
        (name, *answer)
        for name, observation in seen.items()
        for answer in observed_answers(desired.clusters[name], needed, observation)
    )


class SourceReader:
    """Reads the source branch and caches it: a blob is parsed once, a commit assembled once."""

    def __init__(self, repository: Repository) -> None:
        """Read from a repository whose commits have been fetched."""
        self._repository = repository
        self._parsed: dict[BlobId, ParsedFile] = {}
        self._in_force: dict[str, BlobId] = {}
        self._looked_at: set[BlobId] = set()
        self._lost = LostObjects(repository)
        self._gone = GoneVersions(repository)
        self._uncertain = False
        self._desired: Desired | None = None
        self._observed: SourceContents = {}
        self._seen: dict[ClusterName, ClusterObservation] = {}
        self._answers: ObservedAnswers = frozenset()
        self._compared: tuple[object, Mapping[ClusterName, tuple[object, ...]]] = None, {}

    def desired(self, commit: CommitId) -> Desired:
        """Return the fleet of a commit; the same object while the commit is the same.

        A file with an error, of its own or in conflict with others, is replaced by its last good version, and its
        errors stay reported. Without such a version the file is left out and the result is incomplete. The result
        depends on the commit alone, as far as the remote has its history, and on what `expanded` has seen last of the
        sources of templates. While history is needed and the remote is away, the versions in force stay so; with none
        in force this raises Transient.
        """
        if self._desired is None or self._desired.commit != commit or self._uncertain:
            self._desired = None  # if this raises, the stand-in versions are not final
            self._desired = self._load(commit)
        return self._desired

    def expanded(self, commit: CommitId, seen: Observed) -> Desired:
        """Return the fleet of a commit with templates that are made from what is seen on clusters.

        Its warnings of prerequisites go by the clusters as they are seen. The same object while the commit, those
        objects and these answers are the same; `desired` returns it until the next call.
        """
        desired = self.desired(commit)
        if desired.sources or self._observed:
            contents = observed_contents(desired.sources, seen)
            if contents != self._observed:
                self._observed, self._desired = contents, None
                desired = self.desired(commit)
        self._compare(desired, seen)
        return self.desired(commit)

    def _compare(self, desired: Desired, seen: Observed) -> None:
        """Let the fleet be assembled again if other prerequisites are seen than at the last assembly."""
        clusters = {name: seen.clusters[name] for name in desired.clusters if name in seen.clusters}
        parts = {name: parts for name, each in clusters.items() if any(parts := _observed_parts(each))}
        last, known = self._compared
        same = desired.templates is last and parts.keys() == known.keys()
        if same and all(a is b for name in parts for a, b in zip(parts[name], known[name], strict=True)):
            return
        self._compared = desired.templates, parts
        answers = _answers(desired, {name: clusters[name] for name in parts})
        if answers != self._answers:
            self._answers, self._seen, self._desired = answers, clusters, None

    def beside(self) -> SourceReader:
        """Return a reader for the commits of other branches, which shares what is parsed and nothing else."""
        reader = SourceReader(self._repository)
        reader._parsed = dict(self._parsed)
        reader._lost = self._lost.copy()
        return reader

    def _load(self, commit: CommitId) -> Desired:
        """Assemble a commit from good versions, and from the objects that have moved into files that are not in force.

        Those by which others are judged come in force again first: a Workspace before its templates.
        """
        self._uncertain, self._looked_at = False, set()
        entries = self._repository.entries(commit, sizes=True, others=True)
        others = {entry.path: entry for entry in entries if entry.type is not EntryType.FILE or not is_read(entry.path)}
        current = self._current(entry for entry in entries if entry.type is EntryType.FILE)
        directories = tuple(directories_like_files(entry.path for entry in entries))
        lost = tuple(self._lost_contents(commit, current, others, directories))
        contents: dict[PathSource, SourceContent | UnreadSource] = {}
        moved: tuple[MovedObject, ...] = ()
        while True:
            settled = self._settled(commit, current, (lost, moved), contents)
            tried = {(each.path, key(each.declared.value)) for each in moved}
            found = [
                each
                for each in self._moved(commit, current, settled)
                if (each.path, key(each.declared.value)) not in tried
            ]
            if not found:
                break
            first = min(each.rank for each in found)
            moved += tuple(each for each in found if each.rank == first)
        files = {path: version.file for path, version in settled.in_force.items()}
        problems_of = {path: found for path, found in settled.problems_of.items() if not is_ignored(path, files)}
        self._remember(current, settled.in_force)
        reported = [problem for problem in settled.desired.problems if problem.path not in problems_of]
        for path, file_problems in problems_of.items():
            blob = settled.in_force[path].blob if path in settled.in_force else None
            reported += [*file_problems, last_good_version(blob).at(path)]
        reported += [each.problem for each in moved]
        if not (settled.desired.clusters or settled.desired.workspaces) and (below := _fleets_below(current)):
            reported = [below]
        shown = (entry for entry in others.values() if not any(is_at(entry.path, path) for path in problems_of))
        unread = unread_entries(shown, files, self._misnamed)
        reported += [problem for problem in unread if not is_ignored(problem.path, files)]
        incomplete = bool(settled.refused) or any(path not in settled.in_force for path in problems_of)
        return replace(settled.desired, problems=tuple(sorted(reported)), incomplete=incomplete)

    def _settled(
        self,
        commit: CommitId,
        current: Mapping[str, _Version],
        stayed: tuple[Iterable[LostContent], Iterable[MovedObject]],
        contents: dict[PathSource, SourceContent | UnreadSource],
    ) -> _Settled:
        """Assemble a commit, stepping back from bad versions until nothing is rejected any more.

        Each round takes every rejected file one step on, from the current version to the good ones before it to none,
        so that it ends, and almost always after one round. `stayed` are what stays in force though it is in no file.
        """
        past: dict[str, Iterator[BlobId]] = {}
        in_force = dict(current)
        problems_of: dict[str, tuple[Problem, ...]] = {}
        excused: frozenset[str] = frozenset()
        newcomers: dict[Contest, tuple[str, Identity]] = {}
        for path, version in current.items():
            if version.file.broken:
                problems_of[path] = tuple(problem.at(path) for problem in version.file.problems)
                self._step_back(commit, path, in_force, past)
        lost, moved = stayed
        for content in lost:
            problems_of[content.path] = (content.problem,)
            in_force[content.path] = _Version(blob=content.blob, file=content.file)
        without_moved = {each.path: in_force.get(each.path) for each in moved}
        for each in moved:
            base = in_force.get(each.path, _Version(blob=each.blob, file=ParsedFile()))
            in_force[each.path] = replace(base, file=replace(base.file, objects=(*base.file.objects, each.declared)))
        trusted = {path for path, version in current.items() if version.blob == self._in_force.get(path)}
        refused: set[str] = set()
        while True:
            files = {path: version.file for path, version in in_force.items()}
            blobs = {path: version.blob for path, version in in_force.items()}
            broken = (
                replace(version.file, spreads=(), limits=()) for version in current.values() if version.file.broken
            )
            bad = [(path, current[path].file) for path in problems_of if path in current]
            spreads = tuple(replace(spread, path=path) for path, file in bad for spread in file.spreads)
            limits = tuple(replace(absent, path=path) for path, file in bad for absent in file.limits)
            assembly = assemble_with_rejections(
                commit,
                files,
                blobs=blobs,
                contents=self._contents(commit, files, contents),
                absent=(*broken, ParsedFile(mentioned=excused, spreads=spreads, limits=limits)),
                newcomers=frozenset(newcomers.values()),
                trusted=trusted,
                seen=self._seen,
            )
            if self._settle(assembly.contests, commit, newcomers):
                continue
            excused |= assembly.excused
            if not assembly.rejected:
                return _Settled(
                    desired=assembly.desired, in_force=in_force, problems_of=problems_of, refused=frozenset(refused)
                )
            for path in sorted(assembly.rejected):
                if path in without_moved:
                    refused.add(path)
                    before = without_moved.pop(path)
                    in_force = {each: version for each, version in in_force.items() if each != path}
                    in_force |= {} if before is None else {path: before}
                    continue
                problems = tuple(problem for problem in assembly.desired.problems if problem.path == path)
                problems_of.setdefault(path, problems)
                self._step_back(commit, path, in_force, past)

    def _moved(self, commit: CommitId, current: Mapping[str, _Version], settled: _Settled) -> list[MovedObject]:
        """Find the objects that are in no file in force, and may be in one that is not."""
        in_force = settled.in_force
        unread = {
            path: UnreadVersion(
                blob=version.blob, file=version.file, in_place=in_force[path].blob if path in in_force else None
            )
            for path, version in current.items()
            if version.file.pointer_to
            or (path in settled.problems_of and (version.file.broken or version.file.objects))
        }
        try:
            versions = self._gone.find(commit, unread, self._read)
        except (Transient, Conflict) as error:
            if isinstance(error, Transient) and not self._in_force:
                raise
            self._uncertain = self._uncertain or isinstance(error, Transient)
            versions = {held: dict.fromkeys(unread, "") for held in self._in_force.items() if held[1] in self._parsed}
        files = {path: version.file for path, version in in_force.items()}
        by_pointer = any(version.file.pointer_to for version in unread.values())
        gone: list[GoneVersion] = []
        for (path, blob), before in versions.items():
            if not is_ignored(path, files):
                self._looked_at.add(blob)
                digest = hashlib.sha256(self._repository.read((blob,))[blob]).hexdigest() if by_pointer else ""
                file = without_definitions_elsewhere({**files, path: self._read((blob,))[blob]})[path]
                gone.append(GoneVersion(path=path, blob=blob, file=file, digest=digest, before=before))
        return list(moved_objects(gone, {path: version.file for path, version in unread.items()}, files.values()))

    def _current(self, files_of_commit: Iterable[TreeEntry]) -> dict[str, _Version]:
        """Read the files of a commit, parsing only new versions, and drop ignored files."""
        entries = [entry for entry in files_of_commit if is_read(entry.path)]
        for entry in entries:
            if entry.size > MAX_BYTES:
                self._parsed.setdefault(entry.blob, ParsedFile(problems=(too_large("", entry.size),)))
        self._parse(entry.blob for entry in entries)
        versions = {entry.path: _Version(blob=entry.blob, file=self._parsed[entry.blob]) for entry in entries}
        files = {path: version.file for path, version in versions.items()}
        return {path: version for path, version in versions.items() if not is_ignored(path, files)}

    def _contents(
        self, commit: CommitId, files: Mapping[str, ParsedFile], known: dict[PathSource, SourceContent | UnreadSource]
    ) -> SourceContents:
        """Read what templates are made from in the repository itself; `known` is added to."""
        sources = path_sources(files.values())
        for source in sources - known.keys():
            known[source] = self._read_path(commit, source)
        return {**self._observed, **{SourceKey(source): known[source] for source in sources}}

    def _read_path(self, commit: CommitId, source: PathSource) -> SourceContent | UnreadSource:
        """Read the manifests of a path, at its own commit where it is pinned."""
        try:
            entries = self._repository.entries(CommitId(source.commit) or commit, sizes=True, others=True)
        except (InvalidInput, Transient) as error:
            if not source.commit:
                raise
            return UnreadSource(message=f"commit {source.commit} cannot be read: {error}", remedy="mend spec.from.pin")
        return read_source(source, entries, self._repository.read, source.commit)

    def _parse(self, blobs: Iterable[BlobId]) -> None:
        """Parse versions that have not been parsed before."""
        unseen = iter([blob for blob in dict.fromkeys(blobs) if blob not in self._parsed])
        while batch := tuple(islice(unseen, _BATCH)):
            for blob, data in self._repository.read(batch).items():
                small = len(data) <= MAX_BYTES
                self._parsed[blob] = parse_file(data) if small else ParsedFile(problems=(too_large("", len(data)),))

    def _step_back(
        self, commit: CommitId, path: str, in_force: dict[str, _Version], past: dict[str, Iterator[BlobId]]
    ) -> None:
        """Replace the version of a file in force by the next earlier good version, or by nothing if none exists."""
        version = in_force.pop(path)
        if path not in past:
            past[path] = self._earlier(commit, path, version.blob)
        good = next(past[path], None)
        if good is not None:
            in_force[path] = _Version(blob=good, file=self._parsed[good])

    def _earlier(self, commit: CommitId, path: str, current: BlobId) -> Iterator[BlobId]:
        """Yield the versions of a file that were there before and have no error of their own, newest first, each once.

        git is asked even if a version is in force already: another may have come and gone unseen since, or been kept
        out by another file that has changed.
        """
        seen = {current}
        good = False
        for limit in _LOOKS:
            try:
                versions = self._repository.earlier(commit, path, limit=limit)
            except Transient:
                held = self._in_force.get(path)
                if held is None or held in seen:
                    raise
                self._uncertain = True
                yield held
                return
            for blob in versions:
                if blob not in seen:
                    seen.add(blob)
                    if self._is_good(blob):
                        good = True
                        yield blob
            if good or len(versions) < limit:
                return

    def _settle(
        self, contests: Iterable[Contest], commit: CommitId, newcomers: dict[Contest, tuple[str, Identity]]
    ) -> bool:
        """Record which of two objects gives way to the other, and return whether that changes the objects in force.

        The older object stays, so that a new file takes no name from an old one, whatever its path. Of two objects that
        came in one commit, the first by path stays.
        """
        changed = False
        for contest in contests:
            first = contest.first, contest.first_identity
            second = contest.second, contest.second_identity
            if contest in newcomers or first in newcomers.values() or contest.first == contest.second:
                continue
            earlier = self._precedes(second, first, commit)
            newcomers[contest] = first if earlier else second
            changed = changed or earlier
        return changed

    def _precedes(self, first: tuple[str, Identity], other: tuple[str, Identity], commit: CommitId) -> bool:
        """Return whether an object stood in its file before another stood in its own.

        Where history cannot be read, or ends before that, what is in force came first.
        """
        states: Iterable[Mapping[str, BlobId]] = ()
        try:
            states = self._repository.states(commit, (first[0], other[0]), limit=_LOOKS[1])
        except Transient:
            self._uncertain = True
        for state in states:
            held = [self._held(state.get(path), wanted) for path, wanted in (first, other)]
            # A broken version proves nothing.
            if None not in held and held[0] != held[1]:
                return bool(held[0])
            if held == [False, False]:
                return False
        return other[0] not in self._in_force and first[0] in self._in_force

    def _held(self, blob: BlobId | None, wanted: Identity) -> bool | None:
        """Return whether a version of a file holds an object; None if it is broken."""
        if blob is None:
            return False
        self._looked_at.add(blob)
        self._parse((blob,))
        file = self._parsed[blob]
        return None if file.broken else any(identity(declared.value) == wanted for declared in file.objects)

    def _lost_contents(
        self,
        commit: CommitId,
        current: Mapping[str, _Version],
        others: Mapping[str, TreeEntry],
        directories: Iterable[str],
    ) -> Iterator[LostContent]:
        """Yield what stood in paths that stand without it."""
        files = {path: version.file for path, version in current.items()}
        paths = suspects(files, others.keys(), directories)
        try:
            pasts = self._lost.versions(commit, paths, self._read)
        except Transient:
            if not self._in_force:
                raise
            self._uncertain = True
            held = ((path, self._in_force[path]) for path in paths if path in self._in_force)
            pasts = {path: (blob,) for path, blob in held if blob in self._parsed}
        past = {path: [(blob, self._read((blob,))[blob]) for blob in blobs] for path, blobs in pasts.items()}
        yield from lost_contents(past, files, others, partial(self._lost.names_beside, read=self._read))

    def _read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, ParsedFile]:
        """Parse versions of files, and return them."""
        wanted = tuple(blobs)
        self._parse(wanted)
        return {blob: self._parsed[blob] for blob in wanted}

    def _misnamed(self, entry: TreeEntry) -> ParsedFile:
        """Return what a file holds whose name is not read."""
        self._looked_at.add(entry.blob)
        return ParsedFile() if entry.size > MAX_BYTES else self._read((entry.blob,))[entry.blob]

    def _is_good(self, blob: BlobId) -> bool:
        """Return whether a version has no error of its own."""
        self._looked_at.add(blob)
        self._parse((blob,))
        return not self._parsed[blob].broken

    def _remember(self, current: Mapping[str, _Version], in_force: Mapping[str, _Version]) -> None:
        """Keep the versions in force, and forget those that are neither in force nor just read."""
        self._in_force = {path: version.blob for path, version in in_force.items()}
        kept = {version.blob for version in current.values()} | {*self._in_force.values()} | self._looked_at
        self._parsed = {blob: file for blob, file in self._parsed.items() if blob in kept}
