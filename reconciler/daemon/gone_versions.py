"""Finds the versions of files that objects may have left for a file that is not in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.read_file import is_read
from reconciler.daemon.lost_objects import Read
from reconciler.model.bounds import SOURCE_HISTORY
from reconciler.model.ids import BlobId, CommitId
from reconciler.ports import Repository

_LOOKS = (20, 200, SOURCE_HISTORY.most)
"""Commits that are searched for the one that changed a file at first, and where it is not among these."""
_EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadVersion:
    """The version of a file that is not in force, and the one in its place."""

    blob: BlobId
    file: ParsedFile
    in_place: BlobId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _MoveSpan:
    """Commits in which objects may have moved into a file."""

    below: CommitId
    """The commit before the first of them."""
    last: CommitId | None = None
    """None for the newest that there is."""
    pointer_to: str = ""
    """What a pointer stood for when it came."""


class GoneVersions:
    """Remembers for each file that is not in force since when it is not: it is asked about once for each version."""

    def __init__(self, repository: Repository) -> None:
        """Know nothing yet."""
        self._repository = repository
        self._known: dict[tuple[str, BlobId, BlobId | None], tuple[_MoveSpan, ...]] = {}

    def find(
        self, commit: CommitId, unread: Mapping[str, UnreadVersion], read: Read
    ) -> dict[tuple[str, BlobId], dict[str, str]]:
        """Find the versions of other files that stood before commits that changed `unread` ones, newest first.

        Each has the paths of those, and what pointers among them stood for. Raises Transient where history has to be
        fetched and cannot be, and Conflict where the remote has no more of it.
        """
        gone: dict[tuple[str, BlobId], dict[str, str]] = {}
        known, self._known = self._known, {}
        for path, version in sorted(unread.items()):
            name = path, version.blob, version.in_place
            self._known[name] = known[name] if name in known else self._spans(commit, path, version, read)
            for span in self._known[name]:
                for change in self._repository.changes(span.below, span.last or commit):
                    # A file that is not in force is stepped back by itself.
                    if change.old is not None and is_read(change.path) and change.path not in unread:
                        gone.setdefault((change.path, change.old), {})[path] = span.pointer_to
        return gone

    def _spans(self, commit: CommitId, path: str, version: UnreadVersion, read: Read) -> tuple[_MoveSpan, ...]:
        """Return the spans of commits in which objects may have moved into a file, newest first.

        Each begins before a commit that changed the file, which is followed back to the version that is in force in its
        place, or to where it was added. Into a pointer they moved in the commit that made it one: of what later commits
        delete, nothing says that it is the same.
        """

        def pointer_to(blob: BlobId | None) -> str:
            return "" if blob is None else read((blob,))[blob].pointer_to

        spans: list[_MoveSpan] = []
        for limit in _LOOKS:
            section = self._repository.section(commit, since=_EVER, under=(path,), limit=limit)
            spans = []
            parents = (section.base, *(each.commit for each in section.commits))
            for parent, each in reversed([*zip(parents, section.commits, strict=False)]):
                change = next((change for change in each.files if change.path == path), None)
                if change is None or parent is None:
                    continue
                if not version.file.pointer_to:
                    spans.append(_MoveSpan(below=parent.id))
                    if change.old in (None, version.in_place):
                        return tuple(spans)
                elif not pointer_to(change.old):
                    return (_MoveSpan(below=parent.id, last=each.commit.id, pointer_to=pointer_to(change.new)),)
            if section.base is None:
                break
        return tuple(spans)
