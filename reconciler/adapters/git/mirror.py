"""The directory of the bare mirror: one for each remote, locked by one process at a time.

A mirror can always be fetched anew. So nothing here waits for the disk or keeps a backup. Directories that other users
can write to are refused: git runs programs that a mirror's configuration names.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from reconciler.adapters import operating_system
from reconciler.adapters.git.known_refs import known_refs
from reconciler.errors import InvalidInput, Transient
from reconciler.model.ids import CommitId

_REPOSITORY = "mirror.git"
_LEFT_BEHIND = (
    "*.lock",
    "refs/**/*.lock",
    "objects/pack/tmp_*",
    "objects/pack/.tmp-*",
    "objects/tmp_*",
    "objects/incoming-*",
    "objects/tmp_objdir-*",
    "objects/??/tmp_obj_*",
    "shallow_*",
    "fast_import_crash_*",
    "gc.pid",
)
"""Leftovers of a killed git: locks that would block the next one for ever, and partial files."""

SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.logAllRefUpdates": "false",
    "maintenance.auto": "false",
    "fetch.writeCommitGraph": "false",
    "push.recurseSubmodules": "no",
    "push.followTags": "false",
    "push.gpgSign": "false",
    "protocol.version": "2",
    # Fetched objects stay in their pack: unpacking costs a process and many files, and a git that is killed meanwhile
    # leaves a commit without its files, while a pack is either complete or absent.
    # A pass writes mostly deltas and ids, which hardly compress: zlib takes a sixth of the time for a third.
    "core.compression": "0",
    "fetch.unpackLimit": "1",
    "fastimport.unpackLimit": "1",
}
"""The git configuration of a mirror."""


class Mirror:
    """Holds the mirror's directory by a file lock until `close`.

    A second process gets a private directory. It is removed on `close` or, if its owner was killed, by the next owner
    of the shared one. `shared` is the remote's directory, and `private` whether another process holds it. `beside` is
    the directory of the mirror whose known tips count here as well, if there is one.
    """

    def __init__(self, cache: Path, url: str, *, main: Path | None = None) -> None:
        """Take the remote's shared directory below `cache`, or make a private one if it is taken.

        `main` is the cache of the passes, where that is another one.

        Raises InvalidInput if another user may write to `cache`, OSError if we may not.
        """
        name = hashlib.sha256(url.encode()).hexdigest()[:16]
        _make(cache)
        _refuse_others(cache)
        self._place = self.shared = cache / name
        self.known_before = _close_to_others(self._place)
        """Known tips, by ref, of a mirror that had to be removed: ids alone."""
        _make(self._place)
        _refuse_others(self._place)
        lock = _lock(self._place)
        self.private = lock is None
        if lock is None:
            self._place, lock = _private(cache, name)
        else:
            _sweep(cache, name)
        self._lock = lock
        others = self.shared if main is None else main / name
        self.beside = None if others == self._place else others
        for pattern in _LEFT_BEHIND:
            for path in self.git_dir.glob(pattern):
                _remove(path)

    @property
    def git_dir(self) -> Path:
        """The path of the bare repository, which may not exist yet."""
        return self._place / _REPOSITORY

    def exists(self) -> bool:
        """Tell whether the directory holds a git repository."""
        return (self.git_dir / "HEAD").is_file() and (self.git_dir / "objects").is_dir()

    @property
    def aside(self) -> Path:
        """A repository that was taken for broken; if a branch is lost, nobody else may hold what is in it."""
        return self._place / "aside.git"

    def throw_away(self, *, put_aside: bool) -> None:
        """Remove the repository, or put the first one aside until `forget_aside`.

        Raises Transient where it cannot be put aside: it stays.
        """
        if put_aside and self.git_dir.exists() and not self.aside.exists():
            try:
                self.git_dir.rename(self.aside)
            except OSError as error:
                raise Transient(f"renaming {self.git_dir} to {self.aside.name}: {error.strerror or error}") from error
        _remove(self.git_dir)

    def forget_aside(self) -> None:
        """Remove what was put aside."""
        _remove(self.aside)

    def shallow(self) -> frozenset[str]:
        """Return the commits that were fetched without their parents."""
        try:
            return frozenset((self.git_dir / "shallow").read_text(encoding="ascii").split())
        except FileNotFoundError:
            return frozenset()

    def write_shallow(self, commits: Iterable[CommitId]) -> None:
        """Replace the list of the commits that were fetched without their parents; no git may run on the mirror.

        Raises Transient.
        """
        replace_file(self.git_dir / "shallow", "".join(f"{commit}\n" for commit in sorted(commits)))

    def packs(self) -> int:
        """Count the packs."""
        return sum(1 for _ in (self.git_dir / "objects" / "pack").glob("*.pack"))

    def close(self) -> None:
        """Unlock the directory, and remove a private one."""
        os.close(self._lock)  # first: Windows removes no file that is open, and nobody else takes a private directory
        if self.private:
            _remove(self._place)


def replace_file(file: Path, text: str) -> None:
    """Replace the text of a small file of the cache as a whole, or remove the file where there is none.

    Raises Transient where the disk takes nothing, as a full one: the file stays as it was.
    """
    written = file.with_name(f"{file.name}_new")
    try:
        if not text:
            file.unlink(missing_ok=True)
            return
        written.write_text(text, encoding="utf-8")
        written.replace(file)
    except OSError as error:
        raise Transient(f"writing {file}: {error.strerror or error}") from error


def _make(directory: Path) -> None:
    """Make a directory and its missing parents with mode 0700, whatever the umask."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process has made it just now
            path.mkdir(mode=0o700)
            path.chmod(0o700)
    if not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))


def _refuse_others(directory: Path) -> None:
    """Raise InvalidInput for a directory that other users own or can write to."""
    status = directory.stat()
    if not operating_system.is_ours(status):
        raise InvalidInput(
            f"cache {directory}: belongs to user {status.st_uid} (try OVERSPILL_CACHE_DIR=<a directory of your own>,"
            " which is made if it is missing)"
        )
    if operating_system.is_open_to_others(status):
        raise InvalidInput(
            f"cache {directory}: others can write there (try chmod go-w {directory},"
            f" or OVERSPILL_CACHE_DIR={directory}/overspill)"
        )


def _close_to_others(place: Path) -> list[tuple[str, CommitId]]:
    """Give our directory mode 0700, or remove one that others may have written to: git runs what they wrote.

    One that others could only read stays, as after a restore from a backup: it has what the remote is compared with.
    Of one that is removed, the known tips are returned. Whoever made one up stops our writes, and gains nothing.
    """
    try:
        status = place.lstat()
    except FileNotFoundError:
        return []
    ours = stat.S_ISDIR(status.st_mode) and operating_system.is_ours(status)
    if ours and not operating_system.is_open_to_others(status, 0o077):
        return []
    if ours and not operating_system.is_open_to_others(status) and _is_ours_alone(place):
        place.chmod(0o700)
        return []
    known = known_refs(place / _REPOSITORY) if ours else []
    _remove(place)
    return known


def _is_ours_alone(directory: Path) -> bool:
    """Return whether nobody else owns, or may write to, anything in a directory."""
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            with contextlib.suppress(FileNotFoundError):  # another process of ours has removed it
                status = Path(parent, name).lstat()
                is_open = not stat.S_ISLNK(status.st_mode) and operating_system.is_open_to_others(status)
                if is_open or not operating_system.is_ours(status):
                    return False
    return True


def _lock(place: Path) -> int | None:
    """Lock a directory without waiting; None if another process holds the lock or has just removed the directory."""
    try:
        handle = os.open(place / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    if not operating_system.lock(handle) or not (place / "lock").exists():
        os.close(handle)
        return None
    return handle


def _private(cache: Path, name: str) -> tuple[Path, int]:
    """Make and lock a private directory."""
    while True:
        place = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=cache))  # made with mode 0700
        lock = _lock(place)
        if lock is not None:
            return place, lock


def _sweep(cache: Path, name: str) -> None:
    """Remove private directories whose owners were killed."""
    for place in cache.glob(f"{name}-*"):
        lock = _lock(place)
        if lock is not None:
            os.close(lock)
            _remove(place)


def _remove(path: Path) -> None:
    """Remove a file or a directory tree, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            operating_system.make_removable(path)
            shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
