"""Processes of git: arguments, environment and time-outs.

GitPython's `Git.execute` starts them. Its `kill_after_timeout` is not used: it finds children by ``pgrep`` or ``ps``,
which slim images lack, and waits without end for a grandchild that keeps the pipe open. Here every git leads a session
of its own, which is killed as a whole; so a Ctrl-C does not interrupt a push half-way.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from typing import cast

from git.cmd import Git
from git.exc import GitCommandNotFound

from reconciler.adapters import operating_system
from reconciler.errors import InvalidInput, Transient
from reconciler.model.outward_call import OutwardCall, Peer
from reconciler.ports import MeasureCall, unmeasured_call

LOCAL_SILENCE = timedelta(minutes=10)
"""Time that a local command may be silent: a repack of a large mirror prints nothing at all."""

_KEPT = frozenset({"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_CEILING_DIRECTORIES"})
"""Inherited variables that only add an organisation's own certificate authorities, or that bound the search for a
repository, which a named one does not need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The result of a git command."""

    status: int
    stdout: bytes
    stderr: str


def _result(output: Output) -> str:
    """Say how a command ended: the remote refuses some branches of a push, or anything fails."""
    if output.status == 0:
        return "ok"
    return "rejected" if output.stdout.startswith(b"!\t") or b"\n!\t" in output.stdout else "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs git commands on one bare repository."""

    git_dir: Path
    settings: Sequence[tuple[str, str]]
    """Pairs of configuration key and value, a key once for each value; they override those of files."""
    environment: Mapping[str, str]
    """Variables that are added to those of git."""
    silence: timedelta
    """Time without output after which a command that talks to the remote counts as hung. git reports progress there, so
    that a large fetch may take longer."""
    measure: MeasureCall = unmeasured_call
    """Measures the commands that talk to the remote."""

    def run(self, arguments: Sequence[str], *, stdin: bytes | None = None, remote: bool = False) -> Output:
        """Run one command to its end and return its output, whatever its exit status.

        Raises Transient if it hangs; its processes are killed by then.
        """
        return self.begin(arguments, stdin=stdin, remote=remote)()

    def begin(
        self, arguments: Sequence[str], *, stdin: bytes | None = None, remote: bool = False
    ) -> Callable[[], Output]:
        """Start one command; the returned function waits for its end, as `run` does.

        The caller has to call it: only then a hung command is killed. Output before that fills a pipe, on which the
        command may block.
        """
        process = self.start(arguments, stdin=stdin is not None)
        # Windows tells of output only at the end, so that there a large fetch would count as hung.
        silence = self.silence if remote and sys.platform != "win32" else LOCAL_SILENCE
        wait = partial(_wait, process, arguments[0], stdin, silence)
        return self._measured(arguments[0], wait) if remote else wait

    def _measured(self, command: str, wait: Callable[[], Output]) -> Callable[[], Output]:
        """Measure a command from here on until it has ended."""
        ending = contextlib.ExitStack()
        note = ending.enter_context(self.measure(OutwardCall(peer=Peer.GIT, verb=command)))

        def end() -> Output:
            with ending:
                output = wait()
                note(_result(output))
                return output

        return end

    def start(self, arguments: Sequence[str], *, stdin: bool) -> Popen[bytes]:
        """Start a command whose streams the caller reads and writes; end it with `kill`."""
        own = {**self._own(), **self.environment}
        # GitPython passes all of our environment on and can only add to it, so env(1) removes the inherited variables
        # that must not reach git. A git hook or alias sets such variables; a daemon has none.
        # Our own settings hold the logins of other services, and of the repository that this may not be.
        inherited = [
            name
            for name in os.environ
            if name.startswith(("GIT_", "OVERSPILL_")) and name not in own and name not in _KEPT
        ]
        prefix = ["env", *(part for name in inherited for part in ("-u", name))] if inherited else []
        try:
            if prefix and shutil.which("env") is None:  # as on Windows
                kept = {name: value for name, value in os.environ.items() if name not in inherited}
                return Popen(
                    ["git", *arguments], cwd=self.git_dir if self.git_dir.is_dir() else None, env=kept | own,
                    stdin=PIPE if stdin else DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True,
                )  # fmt: skip # a command line, word by word
            wrapped = Git(self.git_dir).execute(
                [*prefix, "git", *arguments],
                istream=PIPE if stdin else None,
                as_process=True,
                env=own,
                start_new_session=True,
            )
        except (GitCommandNotFound, FileNotFoundError) as error:
            raise InvalidInput("git is not on the PATH (try: install git 2.34 or later)") from error
        process = wrapped.proc
        # The wrapper would interrupt the process when it is garbage-collected.
        wrapped.proc = None
        return cast("Popen[bytes]", process)

    def _own(self) -> dict[str, str]:
        """Return an environment without the user's configuration, hooks, helpers and prompts."""
        variables = {
            "GIT_DIR": str(self.git_dir),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",  # empty, so that git tries no other helper
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
    """Wait for the end of a command; raises Transient once it is silent for too long."""
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
    """Kill a process that `Runner` started with all of its children, and close its streams."""
    operating_system.kill(process.pid)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):  # flushing to a dead process fails
                stream.close()
    process.wait()
