"""A fleet with everything in flight around whole daemons: renewals, approvals, requests, notifications, people's edits.

Daemons are processes of their own, with their own clock, cache, API and receivers. What has to hold is asked of the
remote and of the receivers, never of a daemon.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

from reconciler.access.rights import digest
from reconciler.adapters.git.known_refs import known_refs, output_ref
from reconciler.core.commits.trailers import Trailer
from reconciler.model.ids import CommitId
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.fakes.event_receiver import SECRET, Receiver, receiving
from tests.fakes.warm_command import overspill

BURST = 4
"""Seconds for which a burst lasts unless it is renewed."""
GPUS = 12
"""Free GPUs of worker-2 and worker-3 together."""
_TOLD = frozenset({
    "Place", "Resize", "Extend", "Move", "Revert", "Hold", "Release", "Receive", "Amend", "Close", "Forget", "Propose",
    "Approve", "EndProposal",
})  # fmt: skip # a list of words
"""Actions of which receivers are told."""

_POLICY = """\
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata: {{name: {name}}}
spec:
  templates: [{name}]
  clusters: [{{name: worker-2}}, {{name: worker-3}}]
  scaleUp: {{window: 0s}}
  scaleDown: {{window: 1s}}
  coolDown: 0s
  hold: 5s
  duration: {{default: {burst}s, renew: WhileNeeded}}
{more}"""
_NOTIFICATION = """\
apiVersion: overspill.dev/v1alpha1
kind: Notification
metadata: {{name: pager}}
spec: {{webhook: {{url: '{url}', secretFrom: pager}}}}
"""


def _template(name: str) -> str:
    """Write the template of a Deployment of its name."""
    text = SOURCE_FILES["template.yaml"].replace("vllm, namespace: kubeslice-demo", name)
    text = text.replace("metadata: {name: vllm, namespace: demo}", f"metadata: {{name: {name}, namespace: demo}}")
    return text.replace("  burstDuration: 10m\n", "").replace("app: vllm", f"app: {name}")


def files(url: str, workloads: Sequence[str]) -> dict[str, str]:
    """Write a fleet of some workloads, the first of which asks for approval, with a receiver at an address."""
    kept = {name: SOURCE_FILES[name] for name in ("fleet.yaml", "clusters.yaml", "workspaces.yaml")}
    policies = {
        f"policies/{name}.yaml": _POLICY.format(
            name=name, burst=BURST, more="  approval: PullRequest\n" if name == workloads[0] else ""
        )
        for name in workloads
    }
    templates = {f"templates/{name}.yaml": _template(name) for name in workloads}
    return {**kept, **policies, **templates, "notifications/pager.yaml": _NOTIFICATION.format(url=url)}


@dataclass
class Scene:
    """A remote, observations, a receiver, and what people and programs have asked for so far."""

    path: Path
    remote: Remote
    receiver: Receiver
    workloads: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)
    signers: Path | None = None
    """A file of allowed signers with the key that all our commits are signed with; None without ssh-keygen."""
    missing: dict[str, int] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    """Names of requests for which a daemon has given its receipt."""
    known: list[str] = field(default_factory=list)
    """Commits of the output branch along first parents, oldest first, as they were last seen."""
    daemons: list[Daemon] = field(default_factory=list)
    """All that were started."""
    _since: dict[str, datetime] = field(default_factory=dict)
    _asked: int = 0
    _observing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def observations(self) -> Path:
        return self.path / "observations"

    def observe(self, *, at: datetime | None = None) -> None:
        """Write what is seen now: the replicas that are missing, and free GPUs that nobody takes."""
        now = at or datetime.now(UTC)
        with self._observing:
            for cluster, gpus in (("worker-1", 0), ("worker-2", 4), ("worker-3", 8)):
                pool = {"name": "gpu", "allocatable": {"cpu": 64, "memory": "512Gi", "nvidia.com/gpu": 8, "pods": 110}}
                seen = {
                    "apiVersion": "overspill.dev/v1alpha1",
                    "kind": "Observation",
                    "cluster": cluster,
                    "observedAt": _time(now),
                    "pools": [{**pool, "nodes": [{"name": f"{cluster}-0", "used": {"nvidia.com/gpu": 8 - gpus}}]}],
                }
                if cluster == "worker-1":
                    seen["workloads"] = [self._short(name, now) for name in self.workloads]
                written = self.observations / f".{cluster}"
                written.write_text(json.dumps(seen))
                written.rename(self.observations / f"{cluster}.json")

    def _short(self, name: str, now: datetime) -> dict[str, object]:
        missing = self.missing.get(name, 0)
        if missing:
            self._since.setdefault(name, now - timedelta(seconds=10))
        else:
            self._since.pop(name, None)
        waiting = [{"replicas": missing, "since": _time(self._since[name])}] if missing else []
        requests = {"cpu": 1, "nvidia.com/gpu": 1}
        about = {"kind": "Deployment", "namespace": "demo", "name": name, "replica": {"requests": requests}}
        return {**about, "wanted": 2 + missing, "running": 2, "unschedulable": waiting}

    def start(self, cache: str = "cache", *, around: Sequence[str] = (), warm: bool = True) -> Daemon:
        """Start a daemon with a cache of that name; `around` is a command that runs it, which needs one not `warm`."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {**self.environment, "OVERSPILL_CACHE_DIR": str(self.path / cache)}
        command = overspill() if warm else [sys.executable, "-m", "reconciler"]
        log = self.path / f"{cache}.log"
        with log.open("ab") as stream:
            began = stream.tell()
            process = subprocess.Popen(
                [*around, *command, "run", "--poll-interval", "1s", "--listen", f"127.0.0.1:{port}"],
                env=environment,
                stdout=stream,
                stderr=stream,
                stdin=subprocess.DEVNULL,
            )
        self.daemons.append(Daemon(process=process, port=port, log=log, began=began))
        return self.daemons[-1]

    def begin(self, daemon: Daemon) -> None:
        """Wait until a daemon is ready and the receiver has a mark: a new one is not told of what happened before."""
        daemon.ready()
        deadline = time.monotonic() + 180
        while not self.remote.git("for-each-ref", "refs/overspill/notified"):
            assert time.monotonic() < deadline, f"the receiver got no mark: {daemon.said()[-2000:]}"
            time.sleep(0.05)

    def run(self, *arguments: str, cache: str = "person") -> subprocess.CompletedProcess[str]:
        """Run a command of a person, with a cache of its own unless another one is named."""
        environment = {**self.environment, "OVERSPILL_CACHE_DIR": str(self.path / cache)}
        return subprocess.run(
            [*overspill(), *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    def kill_while_it_runs(self, *arguments: str, cache: str, after: float) -> bool:
        """Begin a command of a person and kill it so many seconds later; return whether it had not ended by then."""
        environment = {**self.environment, "OVERSPILL_CACHE_DIR": str(self.path / cache)}
        nowhere = subprocess.DEVNULL
        with subprocess.Popen(
            [*overspill(), *arguments], env=environment, stdin=nowhere, stdout=nowhere, stderr=nowhere
        ) as process:
            time.sleep(after)
            runs = process.poll() is None
            process.kill()
        return runs

    def ask(self, daemon: Daemon) -> None:
        """Ask a daemon for a placement as soon as it listens, and note the name if it gives a receipt."""
        self._asked += 1
        name = f"asked-{self._asked}"
        metadata = {"name": name, "namespace": "demo"}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
        body = {
            "workspaceName": "llm",
            "name": name,
            "clusters": ["worker-3"],
            "burstDuration": "5s",
            "manifestResources": [{"name": "settings", "manifest": manifest}],
            "steps": [{"name": "settings", "type": "manifest"}],
        }
        status = 0
        while not status and daemon.process.poll() is None:  # it may not listen yet
            status = daemon.call("POST", "/api/v1/workload-placement", body)
            time.sleep(0.02)
        if status // 100 == 2:
            self.accepted.add(name)

    def approve(self) -> None:
        """Approve the burst that may be proposed, as a person does."""
        self.run("approve", f"llm/{self.workloads[0]}")

    def tip(self) -> CommitId | None:
        return self.remote.tip("placements")

    def known_tip(self, cache: str = "cache") -> CommitId | None:
        """Return the tip of the output branch as the shared mirror below a cache knows it."""
        for mirror in (self.path / cache).glob(f"{'[0-9a-f]' * 16}/mirror.git"):
            return dict(known_refs(mirror)).get(output_ref("placements"))
        return None

    def placements(self) -> dict[str, str]:
        """Return the text of each placement's record by its path."""
        under = self.remote.files("placements", "clusters").items()
        return {path: data.decode() for path, data in under if path.endswith("/placement.yaml")}

    def see_history(self) -> None:
        """See that history was only added to."""
        if self.tip() is None:
            return
        after = self.remote.git("rev-list", "--first-parent", "--reverse", "placements").splitlines()
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.known, after, strict=False)))
        assert kept == len(self.known), f"history was rewritten: {kept} of {len(self.known)} commits are on the branch"
        self.known = after

    def settle(self, daemon: Daemon, patience: float = 90) -> None:
        """Let demand go, and wait until nothing is placed and each receiver has heard of everything."""
        self.missing.clear()
        self.observe()
        deadline = time.monotonic() + patience
        while True:
            self.observe()
            quiet = not self.placements() and not self._untold()
            if quiet:
                return
            assert daemon.process.poll() is None, f"the daemon ended: {daemon.said()[-2000:]}"
            assert time.monotonic() < deadline, (
                f"{[*self.placements()]} stand, {len(self._untold())} commits are not told: {daemon.said()[-3000:]}"
            )
            time.sleep(0.3)

    def _untold(self) -> list[str]:
        return [commit for commit, action, _ in self.actions() if action in _TOLD and commit not in self._heard()]

    def _heard(self) -> set[str]:
        return set(self.receiver.ids)

    def actions(self) -> list[tuple[str, str, str]]:
        """Return the id, the action and the subject's placement or request of each of our commits, oldest first."""
        if self.tip() is None:
            return []
        keys = (Trailer.ACTION, Trailer.PLACEMENT, Trailer.REQUEST, Trailer.PROPOSAL)
        form = "|".join(["%H", *(f"%(trailers:key={key},valueonly,separator=)" for key in keys)])
        rows = [
            line.split("|")
            for line in self.remote.git(
                "log", "--first-parent", "--reverse", f"--format={form}", "placements"
            ).splitlines()
        ]
        return [(row[0], row[1], row[2] or row[3] or row[4]) for row in rows if row[1]]

    def judge(self) -> str:
        """See that nothing is lost, doubled or alive, once all is settled; return the figures."""
        self.remote.git("fsck", "--strict")
        self.see_history()
        supersedes = f"--format=%(trailers:key={Trailer.SUPERSEDES},valueonly,separator=).%H"
        merges = self.remote.git("log", "--merges", supersedes, "placements").splitlines()
        assert not [line for line in merges if line.startswith(".")], "a merge that no person has asked for"
        signed = self._verify()
        actions = self.actions()
        counts = Counter((action, about) for _, action, about in actions if about)
        once = ("Place", "Revert", "Receive", "Close")
        doubled = [key for key, count in counts.items() if key[0] in once and count > 1]
        assert not doubled, f"done twice: {doubled[:3]}"
        begun = {about for action, about in counts if action == "Place"}
        ended = {about for action, about in counts if action == "Revert"}
        assert begun == ended, f"begun and not ended, or the reverse: {sorted(begun ^ ended)[:3]}"
        received = {about.removeprefix("llm/") for action, about in counts if action == "Receive"}
        assert self.accepted <= received, f"lost requests: {sorted(self.accepted - received)[:3]}"
        told = [commit for commit, action, _ in actions if action in _TOLD]
        assert [one for one in self.receiver.ids if one in set(told)] == told, "told out of order, or not at all"
        by_action = Counter(action for _, action, _ in actions)
        return f"{', '.join(f'{number} {action}' for action, number in sorted(by_action.items()))}, {signed}"

    def _verify(self) -> str:
        """See that each commit of ours on the output branch has a signature that verifies; return how many do."""
        if self.signers is None:
            return "unsigned without ssh-keygen"
        trusted = ("-c", f"gpg.ssh.allowedSignersFile={self.signers}")
        listed = self.remote.git(*trusted, "log", "--format=%G? %H %cn", "placements").splitlines()
        ours = [line for line in listed if line.endswith(" Overspill")]
        unsigned = [line for line in ours if not line.startswith("G ")]
        assert ours, "no commit of ours"
        assert not unsigned, f"{len(unsigned)} commits whose signature does not verify: {unsigned[:3]}"
        return f"{len(ours)} signed commits"


@dataclass
class Daemon:
    """A daemon in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    began: int
    """Bytes of the log that are of daemons before this one."""

    def call(self, method: str, path: str, body: object = None) -> int:
        """Send a request and return the status of its answer; 0 where none came."""
        return self.ask(method, path, body)[0]

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """Send a request and return the status and the content of its answer; 0 where none came."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            data = None if body is None else json.dumps(body)
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def ready(self) -> None:
        """Wait until it is ready."""
        deadline = time.monotonic() + 180
        while self.call("GET", "/readyz") != 200:
            assert self.process.poll() is None, self.said()[-2000:]
            assert time.monotonic() < deadline, f"it never was ready: {self.said()[-2000:]}"
            time.sleep(0.05)

    def said(self) -> str:
        """Return what it has logged."""
        return self.log.read_bytes()[self.began :].decode(errors="replace")

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Ask it to end, and return its exit code."""
        self.process.terminate()
        return self.process.wait(60)


TOKEN = "ovs_" + "Ab3-" * 10 + "xyz"


@contextmanager
def scene(path: Path, workloads: Sequence[str] = ("chat", "code"), **variables: str) -> Iterator[Scene]:
    """Make a fleet, whose observations are kept current."""
    path.mkdir(parents=True, exist_ok=True)
    with receiving() as receiver:
        remote = Remote(path / "fleet.git")
        one = Scene(path=path, remote=remote, receiver=receiver, workloads=workloads)
        one.observations.mkdir(exist_ok=True)
        (path / "secrets").mkdir(exist_ok=True)
        (path / "secrets" / "pager").write_text(SECRET + "\n")
        one.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("OVERSPILL_", "GIT_"))},
            "OVERSPILL_REPO": remote.url,
            "OVERSPILL_OBSERVATIONS": str(one.observations),
            "OVERSPILL_NOTIFICATION_SECRETS": str(path / "secrets"),
            "OVERSPILL_API_TOKENS_FILE": str(path / "access.yaml"),
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.com",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.com",
            **variables,
        }
        one.signers = _give_key(one)
        (path / "access.yaml").write_text(_access())
        remote.commit("main", files(receiver.url, workloads))
        one.observe()
        stop = threading.Event()
        keeper = threading.Thread(target=_keep, args=(one, stop))
        keeper.start()
        try:
            yield one
        finally:
            for daemon in one.daemons:
                daemon.kill()
            stop.set()
            keeper.join()


def _give_key(one: Scene) -> Path | None:
    """Let daemons and people sign with a key; return the file of its allowed signer, None without ssh-keygen."""
    if shutil.which("ssh-keygen") is None:
        return None
    key = one.path / "signing-key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bot", "-f", str(key)], check=True)
    one.environment["OVERSPILL_SIGNING_KEY_FILE"] = str(key)
    signers = one.path / "allowed-signers"
    signers.write_text(f"overspill@overspill.dev {key.with_suffix('.pub').read_text()}")
    return signers


def _keep(one: Scene, stop: threading.Event) -> None:
    while not stop.wait(0.5):
        one.observe()


def _access() -> str:
    return f"tokens:\n- name: Ada\n  email: ada@example.com\n  sha256: {digest(TOKEN)}\n  roles: {{'*': Owner}}\n"


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
