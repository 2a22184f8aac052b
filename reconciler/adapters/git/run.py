"""Processes of git: arguments, environment and time-outs.

GitPython's `Git.execute` starts them. Its `kill_after_timeout` is not used: it finds children by ``pgrep`` or ``ps``,
which slim images lack, and waits without end for a grandchild that keeps the pipe open. Here every git leads a session
of its own, which is killed as a whole; so a Ctrl-C does not interrupt a push half-way.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from time import monotonic
from typing import IO, cast

from git.cmd import Git
from git.exc import GitCommandNotFound

from reconciler.adapters import operating_system
from reconciler.errors import InvalidInput, Transient
from reconciler.model.bounds import REMOTE_OUTPUT, REMOTE_SECONDS, REMOTE_STANDSTILL, SIGNATURE_SECONDS, InputBound
from reconciler.model.outward_call import OutwardCall, Peer
from reconciler.ports import MeasureCall, unmeasured_call

LOCAL_SILENCE = timedelta(minutes=10)
"""Time that a local command may be silent: a repack of a large mirror prints nothing at all."""
_LOOK_EVERY = 1.0
"""Seconds between two looks at what a command has received, where it talks to a remote."""
_PART = 64 << 10
"""Bytes of output that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteBounds:
    """Bounds on one exchange with a remote, which may tell of progress for ever."""

    silence: timedelta
    """Time without any output. git reports progress there, so that a large fetch may take longer."""
    signature: timedelta = timedelta(seconds=SIGNATURE_SECONDS.most)
    """Time for a look at one signature of the source branch."""
    standstill: timedelta = timedelta(seconds=REMOTE_STANDSTILL.most)
    """Time in which a fetch brings no object."""
    total: timedelta = timedelta(seconds=REMOTE_SECONDS.most)
    """The whole time."""
    size: int | None = None
    """Bytes that a fetch may bring; None for any."""
    output: InputBound = REMOTE_OUTPUT
    """What git may print of it."""


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
    bounds: RemoteBounds
    """Bounds on the commands that talk to the remote."""
    ended: Callable[[], bool] = lambda: False
    """Whether no fetch is to be waited for any more, as the process ends."""
    measure: MeasureCall = unmeasured_call
    """Measures the commands that talk to the remote."""

    def run(self, arguments: Sequence[str], *, stdin: bytes | None = None, remote: bool = False) -> Output:
        """Run one command to its end and return its output, whatever its exit status.

        Raises Transient if it hangs; its processes are killed by then.
        """
        return self.begin(arguments, stdin=stdin, remote=remote)()

    def run_silent(self, arguments: Sequence[str], *, silence: timedelta) -> Output:
        """Run a local command as `run` does, that may be silent for some time only."""
        return _wait(self.start(arguments, stdin=False), arguments[0], None, silence=silence)

    def begin(
        self, arguments: Sequence[str], *, stdin: bytes | None = None, remote: bool = False
    ) -> Callable[[], Output]:
        """Start one command; the returned function waits for its end, as `run` does.

        The caller has to call it: only then a hung command is killed. Output before that fills a pipe, on which the
        command may block.
        """
        process = self.start(arguments, stdin=stdin is not None)
        if not remote:
            return partial(_wait, process, arguments[0], stdin)
        # Windows tells of output only at the end, so that there a large fetch would count as hung.
        bounds = replace(self.bounds, silence=LOCAL_SILENCE) if sys.platform == "win32" else self.bounds
        received = partial(_received, self.git_dir) if arguments[0] == "fetch" else None

        def wait() -> Output:
            exchange = _Exchange(command=arguments[0], bounds=bounds, received=received, ended=self.ended)
            return _wait(process, arguments[0], stdin, exchange)

        return self._measured(arguments[0], wait)

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


class _Exchange:
    """One command that talks to a remote, and when it has had enough time."""

    def __init__(
        self, *, command: str, bounds: RemoteBounds, received: Callable[[], int] | None, ended: Callable[[], bool]
    ) -> None:
        self._command, self._bounds, self._received, self._ended = command, bounds, received, ended
        self._began = self._heard_at = self._moved_at = monotonic()
        self._heard = self._held = 0
        self._at_first = received() if received is not None else 0

    @property
    def look_every(self) -> float:
        """Seconds between two checks."""
        return min(_LOOK_EVERY, self._bounds.silence.total_seconds(), self._bounds.total.total_seconds())

    def check(self, heard: int) -> None:
        """Raise Transient once a bound is passed; `heard` are the bytes of output so far."""
        now, bounds = monotonic(), self._bounds
        if self._ended() and self._command != "push":  # what others may have seen of a push is finished
            raise Transient(f"git {self._command}: stopping")
        if heard != self._heard:
            self._heard, self._heard_at = heard, now
        if now - self._heard_at >= bounds.silence.total_seconds():
            raise self._trouble(f"no answer for {bounds.silence.total_seconds():g} s, stopped waiting")
        self.check_output(heard)
        if now - self._began >= bounds.total.total_seconds():
            raise self._trouble(f"not done after {bounds.total.total_seconds():g} s, stopped waiting")
        if self._received is None:
            return
        held = self._received()
        if held != self._held:
            self._held, self._moved_at = held, now
        if bounds.size is not None and held - self._at_first > bounds.size:
            raise self._trouble(f"the remote sent more than {bounds.size >> 20} MiB")
        if now - self._moved_at >= bounds.standstill.total_seconds():
            seconds = bounds.standstill.total_seconds()
            raise self._trouble(f"progress without an object for {seconds:g} s, stopped waiting")

    def check_output(self, heard: int) -> None:
        """Raise Transient once there is more output than is kept in memory."""
        if heard > self._bounds.output.most:
            raise self._trouble(f"the remote told more than {self._bounds.output}")

    def _trouble(self, what: str) -> Transient:
        return Transient(f"git {self._command}: {what}")


def _received(git_dir: Path) -> int:
    """Count the bytes of packs, those that are being received among them."""
    total = 0
    for path in (git_dir / "objects" / "pack").glob("*pack*"):
        with contextlib.suppress(OSError):  # git has renamed or removed it meanwhile
            total += path.stat().st_size
    return total


def _wait(
    process: Popen[bytes],
    command: str,
    stdin: bytes | None,
    exchange: _Exchange | None = None,
    *,
    silence: timedelta = LOCAL_SILENCE,
) -> Output:
    """Wait for the end of a command; raises Transient once it is silent for too long, or passes a bound."""
    if exchange is not None and stdin is None and sys.platform != "win32":
        return _receive(process, exchange)
    heard, unsent = 0, stdin
    wait = silence.total_seconds() if exchange is None else exchange.look_every
    try:
        while True:
            try:
                stdout, stderr = process.communicate(unsent, timeout=wait)
            except TimeoutExpired as late:
                size = len(late.stdout or b"") + len(late.stderr or b"")
                if exchange is not None:
                    exchange.check(size)
                elif size == heard:
                    raise Transient(f"git {command}: no answer for {wait:g} s, stopped waiting") from late
                heard, unsent = size, None
            else:
                return Output(status=process.returncode, stdout=stdout, stderr=stderr.decode(errors="replace"))
    finally:
        if process.returncode is None:
            kill(process)


def _receive(process: Popen[bytes], exchange: _Exchange) -> Output:
    """Wait for a command that talks to a remote, and keep no more of its output than the bound between two checks."""
    outputs = {"stdout": bytearray(), "stderr": bytearray()}
    heard, looked = 0, monotonic()
    try:
        with selectors.DefaultSelector() as ready:
            ready.register(cast("IO[bytes]", process.stdout), selectors.EVENT_READ, "stdout")
            ready.register(cast("IO[bytes]", process.stderr), selectors.EVENT_READ, "stderr")
            while ready.get_map():
                for key, _ in ready.select(max(0.0, looked + exchange.look_every - monotonic())):
                    part = os.read(key.fd, _PART)
                    if not part:
                        ready.unregister(key.fileobj)
                    outputs[key.data] += part
                    heard += len(part)
                    exchange.check_output(heard)
                if monotonic() - looked >= exchange.look_every:
                    looked = monotonic()
                    exchange.check(heard)
        while True:
            with contextlib.suppress(TimeoutExpired):
                process.wait(exchange.look_every)
                break
            exchange.check(heard)
        stderr = outputs["stderr"].decode(errors="replace")
        return Output(status=process.returncode, stdout=bytes(outputs["stdout"]), stderr=stderr)
    finally:
        if process.returncode is None:
            kill(process)
        else:
            _close(process)


def kill(process: Popen[bytes]) -> None:
    """Kill a process that `Runner` started with all of its children, and close its streams."""
    operating_system.kill(process.pid)
    _close(process)
    process.wait()


def _close(process: Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):  # flushing to a dead process fails
                stream.close()
