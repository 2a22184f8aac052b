"""The `overspill` command in a process of its own that starts at once: forked off a server that has imported it all.

Nine tenths of what a command costs is importing, over and over. `overspill()` is for what is true of any process: its
environment, directory, signals, terminal, standard streams and exit code. That the command starts by itself is shown
where a test uses ``python -m reconciler``.

The server is one for all workers of a test run, and leaves with the process that began the run. The client, which the
test starts in place of the command, is this file as a script: it hands over its arguments, environment, directory and
standard streams, passes signals on, and ends as the command does. If it is killed, so is the command.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

ADDRESS = "\0overspill-tests-{}"
"""An abstract one, which leaves nothing behind; by the process that began the run."""
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def overspill() -> list[str]:
    """Return the command line that stands for `overspill`; start the server if there is none."""
    import subprocess  # noqa: PLC0415 - the client has to start quickly

    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(ADDRESS.format(run)) != 0:
            root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - no pathlib
            command = [sys.executable, "-c", f"from tests.fakes.warm_command import serve; serve({run})"]
            with subprocess.Popen(
                command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
            ) as server:
                assert server.stdout is not None
                server.stdout.readline()  # it listens, or another one does
                server.returncode = 0  # it is left to itself
    return [sys.executable, "-SI", __file__, str(run)]


def serve(run: int) -> None:
    """Fork a command for each client, for as long as the process that began the run is there."""
    import gc  # noqa: PLC0415 - the client has to start quickly
    import importlib  # noqa: PLC0415 - the client has to start quickly
    import pkgutil  # noqa: PLC0415 - the client has to start quickly
    import select  # noqa: PLC0415 - the client has to start quickly

    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(ADDRESS.format(run))
        except OSError:
            return  # another worker was faster
        listening.listen(64)
        os.write(1, b"listening\n")
        os.dup2(0, 1)
        package = importlib.import_module("reconciler")
        for module in pkgutil.walk_packages(package.__path__, "reconciler."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        gc.freeze()  # a collection in a command would copy all of it
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        run_ended = os.pidfd_open(run)
        while run_ended not in select.select([listening, run_ended], [], [])[0]:
            connection, _ = listening.accept()
            with connection:
                if os.fork() == 0:
                    listening.close()
                    os.close(run_ended)
                    _attend(connection)


def _attend(connection: socket.socket) -> NoReturn:
    """Fork the command of a client, and tell its process id and how it ended."""
    import contextlib  # noqa: PLC0415 - the client has to start quickly
    import marshal  # noqa: PLC0415 - the client has to start quickly
    import select  # noqa: PLC0415 - the client has to start quickly

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    uid = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
    data, streams, _, _ = socket.recv_fds(connection, 4, 3)
    if uid != os.getuid() or not data:
        os._exit(0)
    with connection.makefile("rb") as reading:
        call = marshal.loads(reading.read(int.from_bytes(data, "big")))
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(call, streams)
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(OSError):
        connection.sendall(f"{pid}\n".encode())
    command_ended = os.pidfd_open(pid)
    if command_ended not in select.select([command_ended, connection], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(call: dict[str, Any], streams: list[int]) -> NoReturn:
    """Be the command, as if Python had just started, to its end: its threads, what it does at exit, and its code.

    Only the modules are not torn down, which would copy all that was imported.
    """
    import atexit  # noqa: PLC0415 - the client has to start quickly
    import contextlib  # noqa: PLC0415 - the client has to start quickly
    import runpy  # noqa: PLC0415 - the client has to start quickly
    import threading  # noqa: PLC0415 - the client has to start quickly

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(call["directory"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 - the command's
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115 - the command's
    sys.argv = ["overspill", *call["arguments"]]
    code: object = 0
    try:
        runpy.run_module("reconciler", run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        code = leaving.code or 0
    except BaseException:  # noqa: BLE001 - as Python does at exit
        sys.excepthook(*sys.exc_info())
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)  # noqa: T201 - as sys.exit does
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):  # nobody reads
        sys.stdout.flush()
    os._exit(code)


def main() -> None:
    """Be the client."""
    import marshal  # noqa: PLC0415 - the client has to start quickly

    run, *arguments = sys.argv[1:]
    call = {"arguments": arguments, "environment": dict(os.environ), "directory": os.getcwd()}  # noqa: PTH109 - no pathlib
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(ADDRESS.format(run))
        data = marshal.dumps(call)
        socket.send_fds(connection, [len(data).to_bytes(4, "big")], [0, 1, 2])
        connection.sendall(data)
        answers = connection.makefile()
        pid = int(answers.readline())
        for number in PASSED_ON:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        for stream in (0, 1, 2):  # who reads what the command says sees the end of it
            os.close(stream)
        code = int(answers.readline())
    if code < 0:
        if code != -signal.SIGKILL:  # it has no other way
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
