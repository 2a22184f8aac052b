"""Login plugins (client.authentication.k8s.io), run so that no process of theirs outlives the call."""

from __future__ import annotations

import asyncio
import json
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any

from kubernetes.aio.config.kube_config import ConfigNode, FileOrData, KubeConfigLoader

from reconciler.adapters import operating_system
from reconciler.core.engines.logins import Plugin
from reconciler.errors import Transient
from reconciler.model.bounds import CLUSTER_DEPTH, CLUSTER_EVENT_VALUES, CLUSTER_LOGIN_SIZE, JsonBounds
from reconciler.model.workload import Json
from reconciler.text.json_input import parse_json

PATIENCE = 30
"""Seconds that a plugin may take."""
_CHUNK = 64 << 10
_OUTPUT = JsonBounds(size=CLUSTER_LOGIN_SIZE, values=CLUSTER_EVENT_VALUES, depth=CLUSTER_DEPTH)


async def credentials(plugin: Plugin) -> dict[str, Json]:
    """Run a login plugin, and return the status of its ExecCredential. Raises Transient.

    The plugin is found on our own PATH, whatever its environment says. Its environment holds none of our settings, some
    of which are secret. Its output gets into no message, since it may quote its arguments.
    """
    try:
        async with asyncio.timeout(PATIENCE):  # wait_for of Python 3.11 can swallow a cancellation
            return _status(plugin, parse_json(await _output(plugin), _OUTPUT))
    except TimeoutError as error:
        raise Transient(f"cannot be logged in to: {plugin.command!r} gave no answer in {PATIENCE} s") from error
    except OSError as error:
        raise Transient(f"cannot be logged in to: {plugin.command!r}: {error.strerror}") from None
    except (KeyError, ValueError, TypeError):
        raise Transient(f"cannot be logged in to: {plugin.command!r} failed (run it here to see why)") from None


def _status(plugin: Plugin, answer: Json) -> dict[str, Json]:
    """Return the status of an ExecCredential. Raises KeyError, TypeError or ValueError for any other output."""
    status = dict(answer["status"])
    if answer["apiVersion"] != plugin.version:
        raise ValueError
    if not status.get("token") and not (status.get("clientCertificateData") and status.get("clientKeyData")):
        raise ValueError
    return status


async def _output(plugin: Plugin) -> bytes:
    """Run a program in a session of its own, and kill the whole session at the end. Raises OSError or ValueError."""
    call = {"apiVersion": plugin.version, "kind": "ExecCredential", "spec": {"interactive": False}}
    env = {**operating_system.foreign_environment(), **dict(plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(call)}
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            shutil.which(plugin.command) or plugin.command,
            *plugin.args,
            env=env,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
        output = await _read(process.stdout)
        await process.wait()
    finally:
        await _end(starting)
    if starting.result().returncode:
        raise ValueError
    return output


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """Read all output of a program. Raises ValueError beyond the bound."""
    output = bytearray()
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        output += chunk
        if len(output) > CLUSTER_LOGIN_SIZE.most:
            raise ValueError(f"over {CLUSTER_LOGIN_SIZE}")
    return bytes(output)


async def _end(starting: asyncio.Task[asyncio.subprocess.Process]) -> None:
    """Kill a program with its session, and wait for its end, also while cancelled: nobody else does.

    A start that is cancelled itself would kill the program alone, and not its children.
    """
    cancelled: asyncio.CancelledError | None = None
    while not starting.done():
        try:
            await asyncio.wait({starting})
        except asyncio.CancelledError as error:
            cancelled = error
    process = starting.result()
    operating_system.kill(process.pid)
    while process.returncode is None:
        try:
            await _drain(process)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a program; asyncio tells of it only once its output has been read to the end."""
    while process.stdout is not None and await process.stdout.read(_CHUNK):
        pass
    await process.wait()


async def load(config: Any, context: str, configuration: Any) -> None:
    """Fill a configuration from a context of a kubeconfig. Raises the errors of kubernetes' loader, and Transient."""
    made: Any = _Loader  # the loader has no annotations
    await made(config, context, config_base_path=None).load_and_set(configuration)


class _Loader(KubeConfigLoader):
    """Reads a kubeconfig, and runs its plugin by `credentials`; kubernetes' own loader ignores failures of plugins."""

    async def load_from_exec_plugin(self) -> bool:
        """Take the token or the certificate of the plugin. Raises Transient."""
        user: Any = self._user
        status = await credentials(_plugin(user["exec"]))
        if token := status.get("token"):
            self.token = f"Bearer {token}"
        else:
            self.cert_file, self.key_file = (_file(status, f"client{part}Data") for part in ("Certificate", "Key"))
        return True


def _plugin(node: ConfigNode) -> Plugin:
    given: dict[str, Any] = node.value
    return Plugin(
        command=str(node["command"]),
        args=tuple(str(word) for word in given.get("args") or ()),
        env=tuple((str(variable["name"]), str(variable["value"])) for variable in given.get("env") or ()),
        version=str(node["apiVersion"]),
    )


def _file(status: dict[str, Json], name: str) -> str:
    return str(FileOrData(status, "", data_key_name=name, base64_file_content=False).as_file())
