"""Keeping the mirror's two refs where the remote's two branches are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from reconciler.adapters.git import remote as address
from reconciler.adapters.git.mirror import Mirror
from reconciler.adapters.git.objects import Missing, ObjectReader
from reconciler.adapters.git.remote import Remote
from reconciler.adapters.git.run import Output, Runner
from reconciler.errors import Conflict, InvalidInput, OverspillError, Transient
from reconciler.model.ids import ClusterName, CommitId, TreeId, is_name
from reconciler.model.tree import Branch, Tips

SOURCE = "refs/overspill/source"
OUTPUT = "refs/overspill/output"
CLUSTERS = "refs/overspill/clusters/"

# No ref of ours moves that is not named in a command: the refspecs of the configuration are for pushes.
_FETCH = ("fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--progress", "--refmap=")
_BRANCH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
_BROKEN = re.compile(
    r"^(?:fatal|error): .*(?:not a git repository: |bad object|bad tree|bad ref|broken|corrupt|is empty|unable to read"
    r"|missing (?:blob|tree|commit)|invalid sha1 pointer|valid object|bad config|unresolved deltas|inflate"
    r"|did not send all necessary objects|ould not (?:read|parse) [0-9a-f]{40}|unable to parse|traverse|revision walk"
    r"|shallow)",
    re.MULTILINE,
)
"""What git says of a mirror that is damaged; with one that is whole, a fetch fails for the remote's sake."""


class Tracking:
    """Holds the mirror and what is known of the remote's branches.

    `source` and `output` are full names of branches, `clusters` is how those of the branches of clusters begin.
    """

    def __init__(
        self, remote: Remote, mirror: Mirror, runner: Runner, *, source: str, output: str, clusters: str
    ) -> None:
        """Take over the mirror that is there, or make one; nothing is fetched yet."""
        self.remote = remote
        self.runner = runner
        self.reader = ObjectReader(runner)
        self.source = source
        self.output = output
        self._clusters = clusters
        self._branches: Mapping[ClusterName, Branch] | None = None
        self._branches_read = False
        self.tips = Tips(source=None, output=None)
        self.doubtful = False
        """Set by a push: its git moves our ref by itself, and may do so even after the daemon that began it was killed,
        so that a fetch which brings nothing does not prove that `tips` is right."""
        self.renewals = 0
        self._mirror = mirror
        if not mirror.exists() or not self._take_refs():
            self._renew()

    def close(self) -> None:
        """End the reading process and let the mirror's directory go."""
        self.reader.close()
        self._mirror.close()

    def fetch(self) -> Tips:
        """Bring both refs up to date and return where they stand.

        One process while both branches are known to exist, which says nothing when nothing is new. Raises Transient
        when the remote is away or hangs, InvalidInput when it does not exist or does not let us in.
        """
        doing = f"fetching {self.remote.url}"
        if not self._branches_read:
            self._branches = None
        self._branches_read = False
        look = self.tips.source is None or self.tips.output is None
        for _ in range(3):
            done = self._fetch_listed(doing) if look else self._fetch_both()
            if done.status == 0 and not (look or self.doubtful) and "-> refs/overspill/" not in done.stderr:
                return self.tips
            if done.status == 0 and self._take_refs():
                self.doubtful = False
                return self.tips
            if done.status == 0 or _BROKEN.search(done.stderr):
                self._renew()
            elif "couldn't find remote ref" not in done.stderr:
                raise self.failure(doing, done)
            look = True  # a branch is gone, or went between two questions
        raise Transient(f"{doing}: the branches come and go, or the mirror cannot be kept")

    def branch_names(self) -> list[str]:
        """Ask the remote which branches there are beside ours, by their short names."""
        listed = self.runner.run(["ls-remote", "--heads", address.NAME], remote=True)
        if listed.status:
            raise self.failure(f"listing the branches of {self.remote.url}", listed)
        names = (line.partition(b"\t")[2].decode(errors="replace") for line in listed.stdout.splitlines())
        theirs = (name for name in names if name != self.output and not name.startswith(self._clusters))
        return [name.removeprefix("refs/heads/") for name in theirs]

    def branches(self) -> Mapping[ClusterName, Branch]:
        """Return where the branches of clusters stand; the next fetch keeps up with them.

        Unless the last one did, the remote is asked here, and each branch that is new to us comes without its past.
        """
        self._branches_read = True
        if self._branches is None:
            doing = f"fetching the branches of clusters from {self.remote.url}"
            listed = self.runner.run(["ls-remote", "--heads", address.NAME, f"{self._clusters}*"], remote=True)
            if listed.status:
                raise self.failure(doing, listed)
            # Where there is none, git fails with a depth and says nothing.
            depth = ["--depth=1"] if listed.stdout else []
            done = self.runner.run([*_FETCH, *depth, "--prune", address.NAME, self._cluster_refspec()], remote=True)
            if done.status:
                raise self.failure(doing, done)
            self._branches = {}
            if not self._take_refs():
                self._renew()
                raise Transient(f"{doing}: the mirror is broken and will be fetched anew")
        return self._branches

    def note_moved(self, moved: Mapping[ClusterName, Branch]) -> None:
        """Take note of where branches of clusters stand after a push."""
        if self._branches is not None:
            self._branches = {**self._branches, **moved}

    def deepen(self, branch: str, depth: int) -> None:
        """Bring in the last `depth` commits of a branch, leaving our refs where they are even if it has moved."""
        doing = f"fetching the history of {branch.removeprefix('refs/heads/')}"
        done = self.runner.run([*_FETCH, f"--depth={depth}", address.NAME, branch], remote=True)
        if "couldn't find remote ref" in done.stderr:
            raise Conflict(f"{doing}: the branch is gone")
        if done.status:
            raise self.failure(doing, done)

    def shallow(self) -> frozenset[str]:
        """Return the commits whose parents, if they have any, were left out when they were fetched."""
        return self._mirror.shallow()

    def local(self, arguments: Sequence[str], *, stdin: bytes | None = None) -> bytes:
        """Run a command that needs the mirror only. It fails only if the mirror is broken, so that goes with it."""
        done = self.runner.run(arguments, stdin=stdin)
        if done.status:
            self._renew()
            raise Transient(f"git {arguments[0]} in the mirror: {done.stderr.strip()} (it will be fetched anew)")
        return done.stdout

    def failure(self, doing: str, done: Output) -> OverspillError:
        """Make the error for a command that had to speak to the remote and did not succeed.

        If the mirror is to blame, it has been made anew when this returns.
        """
        stderr = self.remote.redact(done.stderr)
        if _BROKEN.search(stderr):
            self._renew()
            return Transient(f"{doing}: the mirror is broken and will be fetched anew: {stderr.strip()}")
        return address.failure(doing, stderr)

    def incomplete(self, missing: Missing) -> Transient:
        """Make the mirror anew because an object is missing from it, and return the error that says so."""
        self._renew()
        return Transient(f"reading object {missing}: the mirror is incomplete and will be fetched anew")

    def pack(self, *, above: int) -> None:
        """Put small packs together when there are more than `above`."""
        if self._mirror.packs() > above:
            self.local(["repack", "-d", "-q", "--geometric=2", "--no-write-bitmap-index"])

    def _cluster_refspec(self) -> str:
        """Write the refspec of the branches of clusters."""
        return f"+{self._clusters}*:{CLUSTERS}*"

    def _fetch_both(self) -> Output:
        """Ask for both branches, and for those of clusters where somebody wants them, in one process."""
        wanted = [f"+{self.source}:{SOURCE}", f"+{self.output}:{OUTPUT}"]
        if self._branches is not None:
            wanted = ["--prune", *wanted, self._cluster_refspec()]
        return self.runner.run([*_FETCH, address.NAME, *wanted], remote=True)

    def _fetch_listed(self, doing: str) -> Output:
        """Ask which of the branches there are, and fetch those, one that is new to us without its past.

        Those of clusters are left to whoever asks for them next.
        """
        self._branches = None
        listed = self.runner.run(["ls-remote", "--heads", address.NAME, self.source, self.output], remote=True)
        if listed.status:
            raise self.failure(doing, listed)
        names = {line.partition(b"\t")[2].decode(errors="replace") for line in listed.stdout.splitlines()}
        done = listed
        for ours, theirs, tip in ((SOURCE, self.source, self.tips.source), (OUTPUT, self.output, self.tips.output)):
            if theirs in names:
                depth = [] if tip else ["--depth=1"]
                done = self.runner.run([*_FETCH, *depth, address.NAME, f"+{theirs}:{ours}"], remote=True)
                if done.status:
                    return done
            elif tip:
                self.local(["update-ref", "-d", ours])
        return done

    def _take_refs(self) -> bool:
        """Read where the mirror's refs stand; False when it is too broken to tell."""
        fields = "--format=%(refname) %(objectname) %(committerdate:unix) %(tree)"
        followed = [] if self._branches is None else [CLUSTERS]
        listed = self.runner.run(["for-each-ref", fields, SOURCE, OUTPUT, *followed])
        refs = {line[0]: line for line in (line.split(" ") for line in listed.stdout.decode().splitlines())}
        source, output = refs.get(SOURCE), refs.get(OUTPUT)
        if listed.status == 0:
            self.tips = Tips(
                source=CommitId(source[1]) if source else None,
                output=CommitId(output[1]) if output else None,
                output_at=datetime.fromtimestamp(int(output[2]), UTC) if output else None,
            )
            if self._branches is not None:
                names = ((ref.removeprefix(CLUSTERS), line) for ref, line in refs.items() if ref.startswith(CLUSTERS))
                self._branches = {ClusterName(name): _branch(line) for name, line in names if is_name(name)}
        return listed.status == 0

    def _renew(self) -> None:
        """Throw the mirror away and make an empty one; the next fetch fills it."""
        self.reader.close()
        self._mirror.throw_away()
        self.renewals += 1
        self.tips = Tips(source=None, output=None)
        self._branches = None
        made = self.runner.run(["init", "-q", "--bare", "--template=", str(self.runner.git_dir)])
        if made.status:
            raise Transient(f"making the mirror {self.runner.git_dir}: {made.stderr.strip()}")


def _branch(line: Sequence[str]) -> Branch:
    """Read where a branch stands from a line of ``for-each-ref``."""
    _, commit, at, tree = line
    return Branch(commit=CommitId(commit), tree=TreeId(tree), at=datetime.fromtimestamp(int(at), UTC))


def branch_ref(branch: str) -> str:
    """Return the full name of a branch; raises InvalidInput for what git or a refspec would read differently."""
    name = branch.removeprefix("refs/heads/")
    parts = name.split("/")
    if not _BRANCH_NAME.fullmatch(name) or ".." in name or any(part.endswith((".", ".lock")) for part in parts):
        raise InvalidInput(f"branch {branch!r}: not a branch name (try 'main')")
    return f"refs/heads/{name}"
