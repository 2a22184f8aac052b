"""The demo's directory: a bare remote, a person's clone of it, and the git that works on both."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import reconciler
from reconciler.adapters.operating_system import lock
from reconciler.core.schema import yaml
from reconciler.errors import InvalidInput

OUTPUT = "placements"
_MARKER = ".overspill-demo"
_PERSON = {"NAME": "Ann", "EMAIL": "ann@example.com"}
_INIT = "Begin the fleet repository"
_TIMEOUT = 60
_PUSHES = 3
_IMPORTED_FROM = str(Path(reconciler.__file__).parents[1])
"""The directory from which subprocesses import this program, also without an installation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoDirectory:
    """The paths of the demo below the absolute path `out`."""

    out: Path

    @property
    def remote(self) -> Path:
        """The bare repository that stands for a git host."""
        return self.out / "remote.git"

    @property
    def fleet(self) -> Path:
        """A person's clone of it."""
        return self.out / "fleet"

    @property
    def observations(self) -> Path:
        """The observations of the simulated clusters."""
        return self.out / "observations"

    @property
    def recording(self) -> Path:
        """The passes of the daemon."""
        return self.out / "passes"

    @property
    def log(self) -> Path:
        """The output of the daemon."""
        return self.out / "daemon.log"

    @property
    def commits(self) -> Path:
        """The log of the output branch, written at the end."""
        return self.out / "commits.txt"

    @property
    def guide(self) -> Path:
        """The guide to the files, written at the end."""
        return self.out / "README.md"

    @property
    def undo(self) -> Path:
        """A worktree of the clone, on the output branch, where a person reverts commits."""
        return self.out / "undo"

    @property
    def environment(self) -> dict[str, str]:
        """Our environment without the user's git and Overspill settings, and with an author of the demo."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "OVERSPILL_"))}
        person = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _PERSON.items()}
        return {
            **inherited,
            **person,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": os.pathsep.join((_IMPORTED_FROM, *filter(None, [os.environ.get("PYTHONPATH")]))),
            "OVERSPILL_CACHE_DIR": str(self.out / "cache"),
        }

    def git(self, *arguments: str, directory: Path | None = None) -> str:
        """Run git in the clone, or in another repository, and return its output. Raises InvalidInput."""
        return self._run(["git", *arguments], directory or self.fleet).decode(errors="replace").strip("\n")

    def archive(self, revision: str) -> bytes:
        """Return every file of a revision of the remote, as a tar archive."""
        return self._run(["git", "archive", "--format=tar", revision], self.remote)

    def overspill(self, *arguments: str) -> str:
        """Run a command of Overspill as a user would, and return its output."""
        return self._run([*PROGRAM, *arguments], self.out).decode(errors="replace")

    def _run(self, command: Sequence[str], directory: Path) -> bytes:
        try:
            done = subprocess.run(
                command, cwd=directory, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                check=False, timeout=_TIMEOUT,
            )  # fmt: skip # a command line, word by word
        except OSError as error:
            raise InvalidInput(f"running {command[0]}: {error.strerror} (try installing {command[0]})") from error
        except subprocess.TimeoutExpired as error:
            raise InvalidInput(f"running {' '.join(command)}: no end after {_TIMEOUT} s") from error
        if done.returncode != 0:
            problem = done.stderr.decode(errors="replace").strip()
            raise InvalidInput(f"running {' '.join(command)}: {problem or f'exit {done.returncode}'}")
        return done.stdout


PROGRAM = (sys.executable, "-m", "reconciler")
"""The command that starts this installation, also if it is not on the PATH."""


@contextmanager
def claimed(stage: DemoDirectory) -> Iterator[None]:
    """Make the directory, and hold it until the block ends; that of an earlier demo is replaced, any other is refused.

    Raises InvalidInput where another demo holds it.
    """
    _clear(stage.out)
    try:
        stage.out.mkdir(parents=True, exist_ok=True)
        # Where two demos begin at once, one of them makes the marker.
        descriptor = os.open(stage.out / _MARKER, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError as error:
        raise _in_use(stage.out) from error
    except OSError as error:
        raise InvalidInput(f"writing {stage.out}: {error.strerror} (try another --out)") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as marker:
        if not lock(descriptor):
            raise _in_use(stage.out)
        marker.write("Made by `overspill demo`, which replaces this directory when it runs again.\n")
        marker.flush()
        yield


def _in_use(out: Path) -> InvalidInput:
    return InvalidInput(f"another demo plays in {out} now (try another --out)")


def prepare(stage: DemoDirectory) -> None:
    """Fill a claimed directory: a bare remote, and a person's clone of it with the layout of a fleet repository."""
    try:
        stage.observations.mkdir()
    except OSError as error:
        raise InvalidInput(f"writing {stage.out}: {error.strerror} (try another --out)") from error
    stage.git("init", "-q", "--bare", "--initial-branch=main", str(stage.remote), directory=stage.out)
    stage.overspill("init", str(stage.fleet))
    stage.git("init", "-q", "--initial-branch=main")
    stage.git("remote", "add", "origin", "../remote.git")
    commit(stage, _INIT)


def commit(stage: DemoDirectory, message: str) -> None:
    """Commit whatever has changed in the clone, and push it."""
    stage.git("add", "--all")
    stage.git("commit", "-q", "-m", message)
    stage.git("push", "-q", "origin", "main")


def revert(stage: DemoDirectory, commit: str, placement: str) -> str:
    """Revert a commit of the output branch as a person does, push it, and return its subject.

    A push that another one has overtaken is made again. Raises InvalidInput where that does not help.
    """
    for _ in range(_PUSHES - 1):
        try:
            return _push_revert(stage, commit, placement)
        except InvalidInput:
            continue
    return _push_revert(stage, commit, placement)


def _push_revert(stage: DemoDirectory, commit: str, placement: str) -> str:
    """Revert a commit on the newest tip.

    A commit that a later one builds upon cannot be reverted by itself: the placement's directory is removed instead.
    """
    stage.git("fetch", "-q", "origin")
    if not stage.undo.exists():
        stage.git("worktree", "add", "-q", "--detach", str(stage.undo), f"origin/{OUTPUT}")
    stage.git("reset", "-q", "--hard", f"origin/{OUTPUT}", directory=stage.undo)
    try:
        stage.git("revert", "--no-edit", commit, directory=stage.undo)
    except InvalidInput:
        stage.git("reset", "-q", "--hard", f"origin/{OUTPUT}", directory=stage.undo)
        stage.git("rm", "-q", "-r", f"clusters/*/{placement}/*", directory=stage.undo)
        stage.git("commit", "-q", "-m", f"Remove {placement}", directory=stage.undo)
    stage.git("push", "-q", "origin", f"HEAD:{OUTPUT}", directory=stage.undo)
    return stage.git("log", "-1", "--format=%s", directory=stage.undo)


def edit_fields(stage: DemoDirectory, edits: Mapping[str, Mapping[str, str]]) -> None:
    """Set fields of files in the clone: by path, dotted fields and their new values.

    Only the value on the field's line is replaced, so that comments stay. Raises InvalidInput for a missing field: the
    layout has changed and the demo has not.
    """
    for name, fields in edits.items():
        path = stage.fleet / name
        data = path.read_bytes()
        lines = data.decode().split("\n")
        document = yaml.parse(data, name)[0]
        for field, value in fields.items():
            keys = tuple(field.split("."))
            number = document.line(keys) - 1
            changed, count = re.subn(rf"\b({keys[-1]}:\s*)[^\s,}}]+", rf"\g<1>{value}", lines[number], count=1)
            if not count:
                raise InvalidInput(f"preparing the demo: {name}: {field}: is not there")
            lines[number] = changed
        path.write_text("\n".join(lines))


def _clear(out: Path) -> None:
    """Remove an earlier demo or an empty directory; refuse any other."""
    if not out.exists() and not out.is_symlink():
        return
    directory = out.is_dir() and not out.is_symlink()
    if not directory or (any(out.iterdir()) and not (out / _MARKER).is_file()):
        raise InvalidInput(f"{out} is there already, and no demo made it (try another --out)")
    with suppress(FileNotFoundError), (out / _MARKER).open("r+b") as marker:
        if not lock(marker.fileno()):
            raise _in_use(out)
    try:
        shutil.rmtree(out)
    except OSError as error:
        raise InvalidInput(f"replacing {out}: {error.strerror} (try another --out)") from error
