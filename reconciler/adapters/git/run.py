"""Starting git: its arguments, its environment, its time, and nothing else.

GitPython's `Git.execute` does the starting. Its own `kill_after_timeout` is not used: it finds children by asking
``pgrep`` or ``ps``, which slim images lack, and waits without end for a grandchild that keeps the pipe open. Here every
git is the leader of a session of its own, which is killed whole; a Ctrl-C meant for us does not reach a push half done.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import cast

from git.cmd import Git
from git.exc import GitCommandNotFound

from reconciler.errors import InvalidInput, Transient

LOCAL_SILENCE = timedelta(minutes=10)
"""How long a command that stays on this disk may say nothing: a repack of a large mirror says nothing at all."""

_KEPT = frozenset({"GIT_SSL_CAINFO", "GIT_SSL_CAPATH"})
"""Inherited settings that only add trust in an organisation's own certificates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a git command left behind."""

    status: int
    stdout: bytes
    stderr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs git commands on one bare repository.

    `settings` are configuration keys with their values, a key as often as it has values, which hold over any file's;
    `environment` is added to what git needs. `silence`
    is how long a command that talks to the remote may say nothing before it counts as hung; git is asked to report
    progress there, so a large fetch may take as long as it needs.
    """

    git_dir: Path
    settings: Sequence[tuple[str, str]]
    environment: Mapping[str, str]
    silence: timedelta

    def run(self, arguments: Sequence[str], *, stdin: bytes | None = None, remote: bool = False) -> Output:
        """Run one command to its end and return what it wrote, whatever its exit status.

        Raises Transient when it hangs; the processes that belong to it are gone by then.
        """
        return self.begin(arguments, stdin=stdin, remote=remote)()

    def begin(
        self, arguments: Sequence[str], *, stdin: bytes | None = None, remote: bool = False
    ) -> Callable[[], Output]:
        """Begin one command; what is returned waits for its end, as `run` does.

        It is to be called, since only then it is seen to that the command ends. What the command writes before that
        waits in a pipe, and it with that.
        """
        process = self.start(arguments, stdin=stdin is not None)
        silence = self.silence if remote else LOCAL_SILENCE
        return partial(_wait, process, arguments[0], stdin, silence)

    def start(self, arguments: Sequence[str], *, stdin: bool) -> Popen[bytes]:
        """Start a command whose streams the caller reads and writes; end it with `kill`."""
        own = {**self._own(), **self.environment}
        # GitPython hands all of our environment on and can only add to it, so what was inherited and must not reach
        # git is taken out by env(1). Nobody who starts a daemon has such variables; a git hook or alias does.
        inherited = [name for name in os.environ if name.startswith("GIT_") and name not in own and name not in _KEPT]
        prefix = ["env", *(part for name in inherited for part in ("-u", name))] if inherited else []
        try:
            wrapped = Git(self.git_dir).execute(
                [*prefix, "git", *arguments],
                istream=PIPE if stdin else None,
                as_process=True,
                env=own,
                start_new_session=True,
            )
        except GitCommandNotFound as error:
            raise InvalidInput("git is not on the PATH (try: install git 2.34 or later)") from error
        process = wrapped.proc
        # Left with the wrapper, the process would be interrupted as soon as the wrapper is collected.
        wrapped.proc = None
        return cast("Popen[bytes]", process)

    def _own(self) -> dict[str, str]:
        """Return the environment in which nobody's configuration, hooks, helpers or prompts have a say."""
        variables = {
            "GIT_DIR": str(self.git_dir),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",  # set and empty: no other helper is looked for either
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_DEFAULT_HASH": "sha1",  # git 3 has other defaults for both
            "GIT_DEFAULT_REF_FORMAT": "files",
            "GIT_CONFIG_COUNT": str(len(self.settings)),
            "LC_ALL": "C",
            "LANGUAGE": "C",
        }
        for number, (key, value) in enumerate(self.settings):
            variables[f"GIT_CONFIG_KEY_{number}"] = key
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        return variables


def _wait(process: Popen[bytes], command: str, stdin: bytes | None, silence: timedelta) -> Output:
    """Wait for the end of a command, for as long as it says something."""
    heard, unsent = 0, stdin
    try:
        while True:
            try:
                stdout, stderr = process.communicate(unsent, timeout=silence.total_seconds())
            except TimeoutExpired as late:
                size = len(late.stdout or b"") + len(late.stderr or b"")
                if size == heard:
                    raise Transient(
                        f"git {command}: no answer for {silence.total_seconds():g} s, stopped waiting"
                    ) from late
                heard, unsent = size, None
            else:
                return Output(status=process.returncode, stdout=stdout, stderr=stderr.decode(errors="replace"))
    finally:
        if process.returncode is None:
            kill(process)


def kill(process: Popen[bytes]) -> None:
    """End a process that `Runner` started, with everything that it started in turn, and close its streams."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):  # what was buffered for a process that is gone
                stream.close()
    process.wait()
