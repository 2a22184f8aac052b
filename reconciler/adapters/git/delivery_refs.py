"""How far each receiver of notifications has been told: two refs a receiver on the remote (a `ports.Deliveries`).

They point at commits of the output branch, so that no object is made for them, and they lie outside of `refs/heads/`,
where no engine and no CI looks. They move by compare-and-swap, both or none. Every call is a process of its own, which
changes no ref of the mirror, so that threads may call.
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler.adapters.git import remote as address
from reconciler.adapters.git import remote_errors
from reconciler.adapters.git.objects import parse_remote_refs
from reconciler.adapters.git.remote import Remote
from reconciler.adapters.git.run import Runner
from reconciler.errors import Conflict
from reconciler.model.events.notification import DeliveryMarks
from reconciler.model.ids import is_name

PREFIX = "refs/overspill/notified/"
_MARKS = ("told", "sending")


class DeliveryRefs:
    """Reads and moves the refs."""

    def __init__(self, runner: Runner, remote: Remote, refuse_lost: Callable[[], None]) -> None:
        """Take what raises LostBranch while the remote lacks what it is known to have had."""
        self._runner = runner
        self._remote = remote
        self._refuse_lost = refuse_lost

    def read(self, receiver: str) -> DeliveryMarks:
        """Return how far a receiver has been told."""
        doing = f"asking {self._remote.url} how far {receiver} is told"
        done = self._runner.run(["ls-remote", address.NAME, *self._refs(receiver)], remote=True)
        if done.status:
            raise remote_errors.failure(doing, self._remote.redact(done.stderr), self._remote)
        commits = parse_remote_refs(done.stdout)
        told, sending = (commits.get(ref) for ref in self._refs(receiver))
        return DeliveryMarks(told=told, sending=sending or told)

    def move(self, receiver: str, old: DeliveryMarks, new: DeliveryMarks) -> None:
        """Move the marks of a receiver together, or raise Conflict; LostBranch while a branch of ours is lost."""
        doing = f"noting at {self._remote.url} how far {receiver} is told"
        pairs = zip(self._refs(receiver), (old.told, old.sending), (new.told, new.sending), strict=True)
        moves = [(ref, before, after) for ref, before, after in pairs if before != after and after is not None]
        if not moves:
            return
        self._refuse_lost()
        together = ["--atomic"] if len(moves) > 1 else []
        leases = [f"--force-with-lease={ref}:{before or ''}" for ref, before, _ in moves]
        command = ["push", "--porcelain", "--no-verify", *together, *leases, address.NAME]
        done = self._runner.run([*command, *(f"{after}:{ref}" for ref, _, after in moves)], remote=True)
        if done.status == 0:
            # git holds a ref that is at its goal already for up to date, whatever the lease: another one has moved it.
            if b"\n=\t" in b"\n" + done.stdout:
                raise Conflict(f"{doing}: it has been told by another one")
            return
        refused = remote_errors.parse_rejections(done.stdout)
        stderr = self._remote.redact(done.stderr)
        if not refused:
            raise remote_errors.failure(doing, stderr, self._remote)
        refspec, summary = refused[0]
        raise remote_errors.rejection(doing, summary, stderr, self._remote, branch=refspec.partition(":")[2])

    def _refs(self, receiver: str) -> tuple[str, ...]:
        """Name the refs of a receiver."""
        if not is_name(receiver):
            raise ValueError(f"{receiver!r} is no name of a receiver")
        return tuple(f"{PREFIX}{receiver}/{mark}" for mark in _MARKS)
