"""The refs of the mirror that follow the branches of the remote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from reconciler.adapters.git import remote as address
from reconciler.adapters.git import remote_errors
from reconciler.adapters.git.commits import parse
from reconciler.adapters.git.history import FIRST_STEP, GROWTH, History
from reconciler.adapters.git.known_refs import is_known_ref
from reconciler.adapters.git.known_tips import KnownTips
from reconciler.adapters.git.mirror import Mirror
from reconciler.adapters.git.mirror_commits import FETCH, MirrorCommits
from reconciler.adapters.git.objects import (
    Missing,
    ObjectReader,
    parse_clusters,
    parse_directories,
    parse_remote_refs,
)
from reconciler.adapters.git.remote import Remote
from reconciler.adapters.git.run import Output, Runner
from reconciler.core.commits.commit_date import read_date
from reconciler.errors import Conflict, InvalidInput, OverspillError, Transient
from reconciler.model.ids import ClusterName, CommitId, TreeId
from reconciler.model.tree import ROOT, Branch, Identity, Proposal, Tips, alone, is_branch_name

SOURCE = "refs/overspill/source"
PROPOSAL = "refs/overspill/proposal"

_BROKEN = re.compile(
    r"^(?:fatal|error): .*(?:not a git repository: |bad object|bad tree|bad ref|broken|corrupt|is empty|unable to read"
    r"|missing (?:blob|tree|commit)|invalid sha1 pointer|valid object|bad config|unresolved deltas|inflate"
    r"|did not send all necessary objects|ould not (?:read|parse) [0-9a-f]{40}|unable to parse|traverse|revision walk"
    r"|shallow)",
    re.MULTILINE,
)
"""Git's messages about a damaged mirror; any other failure of a fetch is the remote's."""
_NEWS = re.compile(r"^ [^=].* -> refs/overspill/", re.MULTILINE)
_REF = r"[^ \n]+"
"""The name of a ref in git's lines: people choose it, also with line ends and spaces that only Unicode knows."""
_FETCHED = re.compile(rf"^ [^ \n].* -> (refs/overspill/{_REF})", re.MULTILINE)
_NOT_FOLLOWING = re.compile(
    rf"^ ! \[rejected\] .*\(non-fast-forward\)$|^error: cannot lock ref '{_REF}': '{_REF}' exists; cannot create ",
    re.MULTILINE,
)
"""Git's lines on a branch that does not follow its known tip, which therefore stays, and on one below a branch that is
known: the remote has no longer the latter, since it can have no two such branches either."""
_MOST_LEFT_OUT = 200
"""Branches of people that a fetch is told to leave out, each in an argument; it forgets what it gets of others."""


class RemoteBranches:
    """Holds the mirror and the known tips of the remote's branches.

    `source` and `output` are full names of branches, `clusters` is the prefix of the branches of clusters.
    """

    def __init__(
        self,
        remote: Remote,
        mirror: Mirror,
        runner: Runner,
        committer: Identity,
        *,
        source: str,
        output: str,
        clusters: str,
    ) -> None:
        """Open the existing mirror, or make one; nothing is fetched yet."""
        self.remote = remote
        self.runner = runner
        self.reader = ObjectReader(runner)
        self.source = source
        self.output = output
        self._clusters = clusters
        self._branches: Mapping[ClusterName, Branch] | None = None
        self._branches_read = False
        self._foreign: set[str] = set()
        """Branches beside those of clusters, by their full names, that are of no cluster."""
        self.tips = Tips(source=None, output=None)
        self._output_gone = False
        self.doubtful = False
        """Set by a push: its git moves the ref of the mirror, even if the daemon that started it is killed. So a fetch
        without news does not prove that `tips` is right."""
        self.renewals = 0
        self._mirror = mirror
        self.commits = MirrorCommits(runner, self.reader, mirror, committer, deepen=self.deepen)
        self.known = KnownTips(self.commits, mirror, output=output, clusters=clusters)
        if not mirror.exists() or not self._take_refs():
            self._renew()

    @property
    def short_output(self) -> str:
        """The short name of the output branch."""
        return self.output.removeprefix("refs/heads/")

    def close(self) -> None:
        """End the reading process and unlock the mirror's directory."""
        self.reader.close()
        self._mirror.close()

    def fetch(self) -> Tips:
        """Fetch both branches and return their tips.

        It takes one process while both branches are known to exist, which is silent without news. A branch of ours that
        does not follow its known tip stays as it was known, and is among the losses. Raises Transient if the remote is
        unreachable or hangs, InvalidInput if it is missing or denies access.
        """
        doing = f"fetching {self.remote.shown}"
        self.known.consult()
        if not self._branches_read:
            self._branches = None
        self._branches_read = False
        look = self.tips.source is None or self.tips.output is None or self.output in self.known.losses
        for _ in range(3):
            done = self._fetch_listed(doing) if look else self._fetch_both()
            doubtful = look or self.doubtful or self.known.doubtful(with_clusters=self._branches is not None)
            if done.status == 0 and not doubtful and _NEWS.search(done.stderr) is None and not self._gone(done):
                return self.tips
            unfollowed = _is_unfollowed(done)
            if (done.status == 0 or unfollowed) and self._take_refs():
                if unfollowed or self._gone(done) or self.known.doubtful(with_clusters=self._branches is not None):
                    self._judge()
                self.doubtful = False
                return self.tips
            if done.status == 0 or _BROKEN.search(done.stderr):
                self._renew()
            elif "couldn't find remote ref" not in done.stderr:
                raise self.failure(doing, done)
            look = True  # a branch is gone, or was removed between two commands
        raise Transient(f"{doing}: the branches come and go, or the mirror cannot be kept")

    def history(self, branch: str) -> History:
        """Return the history of a branch, by its full name; that of a lost one, from what is known of it."""
        loss = self.known.losses.get(branch)
        stands = self.tips.output if branch == self.output else None
        deepen = partial(self.deepen, loss.known if loss and stands in (None, loss.known) else branch)
        return History(self.reader, self.local, self.shallow, deepen=deepen, is_lost=loss is not None)

    def branch_names(self) -> list[str]:
        """List the other branches of the remote by their short names."""
        listed = self.runner.run(["ls-remote", "--heads", address.NAME], remote=True)
        if listed.status:
            raise self.failure(f"listing the branches of {self.remote.shown}", listed)
        names = parse_remote_refs(listed.stdout)
        theirs = (name for name in names if name != self.output and not name.startswith(self._clusters))
        return [name.removeprefix("refs/heads/") for name in theirs]

    def heads(self, prefix: str) -> dict[str, CommitId]:
        """List the branches of the remote whose full names begin so, with their commits."""
        listed = self.runner.run(["ls-remote", "--heads", address.NAME, f"{prefix}*"], remote=True)
        if listed.status:
            raise self.failure(f"listing the branches of {self.remote.url}", listed)
        return {name: commit for name, commit in parse_remote_refs(listed.stdout).items() if name.startswith(prefix)}

    def propose(self, branch: str) -> Proposal:
        """Fetch a branch by its full name, deep enough to find where it left the source branch."""
        name = branch.removeprefix("refs/heads/")
        doing = f"fetching branch {name!r}"
        if branch == self.output or branch.startswith(self._clusters):
            raise InvalidInput(f"{doing}: Overspill writes it (name a branch with files of the fleet)")
        depth = FIRST_STEP
        while True:
            before = self.shallow()
            refs = [self.source, f"+{branch}:{PROPOSAL}"]
            done = self.runner.run([*FETCH, f"--depth={depth}", address.NAME, *refs], remote=True)
            if "couldn't find remote ref" in done.stderr:
                raise InvalidInput(f"{doing}: the fleet repository has no such branch (try `git push origin {name}`)")
            if done.status:
                raise self.failure(doing, done)
            tip = self.local(["rev-parse", f"{PROPOSAL}^{{commit}}"]).decode().strip()
            shared = self.runner.run(["merge-base", str(self.tips.source), tip])
            if shared.status == 0:
                return Proposal(commit=CommitId(tip), base=CommitId(shared.stdout.decode().strip()))
            if depth > FIRST_STEP and self.shallow() == before:
                raise InvalidInput(f"{doing}: it shares no commit with the source branch (try a branch of that one)")
            depth *= GROWTH

    def branches(self) -> Mapping[ClusterName, Branch]:
        """Return the branches of clusters, and include them in the next fetch.

        If the last fetch did not include them, they are fetched here, new ones without their history.
        """
        self._branches_read = True
        if self._branches is None:
            doing = f"fetching the branches of clusters from {self.remote.shown}"
            listed = self.runner.run(["ls-remote", "--heads", address.NAME, f"{self._clusters}*"], remote=True)
            if listed.status:
                raise self.failure(doing, listed)
            heads = parse_remote_refs(listed.stdout)
            self._foreign = {branch for branch in heads if not is_known_ref(self.known.ref(branch))}
            # Without any branch, git fails on --depth without a message; a known one would lose its history by it.
            known = self.local(["for-each-ref", "--count=1", self.known.cluster_refs])
            depth = ["--depth=1"] if heads.keys() - self._foreign and not known else []
            done = self.runner.run([*FETCH, *depth, address.NAME, *self._cluster_refspecs()], remote=True)
            if done.status and not _is_unfollowed(done):
                raise self.failure(doing, done)
            self._branches = {}
            if not self._take_refs():
                self._renew()
                raise Transient(f"{doing}: the mirror is broken and will be fetched anew")
            gone = any(f"{self._clusters}{cluster}" not in heads for cluster in self._branches)
            if _is_unfollowed(done) or gone or self.known.doubtful():
                self._judge()
        return self._branches

    def directories(self, trees: Sequence[str]) -> list[Mapping[ClusterName, TreeId]]:
        """Return for each tree the ids of its cluster directories. Raises Missing for what the mirror lacks."""
        tops = [parse_directories(tree).get(ROOT) for tree in self.reader.read(trees)]
        ids = list({top: None for top in tops if top is not None})
        inside = dict(zip(ids, map(parse_clusters, self.reader.read(ids)), strict=True))
        return [inside[top] if top else {} for top in tops]

    def note_moved(self, moved: Mapping[ClusterName, Branch]) -> None:
        """Note the tips of branches of clusters after a push."""
        if self._branches is not None:
            self._branches = {**self._branches, **moved}

    def deepen(self, branch: str, depth: int) -> None:
        """Fetch the last `depth` commits of a branch, or of a commit by its id; our refs stay even if it has moved."""
        doing = f"fetching the history of {branch.removeprefix('refs/heads/')}"
        done = self.runner.run([*FETCH, f"--depth={depth}", address.NAME, branch], remote=True)
        if "couldn't find remote ref" in done.stderr or "not our ref" in done.stderr:
            raise Conflict(f"{doing}: it is gone")
        if done.status:
            raise self.failure(doing, done)

    def fetch_commit(self, commit: str) -> None:
        """Fetch a commit by its id, without its history; no ref moves.

        Servers give any commit that a branch or tag of theirs leads to. Raises InvalidInput where this one does not.
        """
        doing = f"fetching commit {commit[:12]} of {self.remote.shown}"
        done = self.runner.run([*FETCH, "--depth=1", address.NAME, commit], remote=True)
        if "not our ref" in done.stderr or "couldn't find remote ref" in done.stderr:
            raise InvalidInput(f"{doing}: it is not there any more (push it to a branch again, or sync another one)")
        if done.status:
            raise self.failure(doing, done)

    def shallow(self) -> frozenset[str]:
        """Return the commits that were fetched without their parents."""
        return self._mirror.shallow()

    def list_no_first_commits(self) -> None:
        """Take commits that have no parents off the list of those that were fetched without their parents.

        Git lists them after a fetch of one commit, and a remote that lacks them refuses to take what is listed.
        """
        listed = self.shallow()
        held = [CommitId(commit) for commit in sorted(listed) if self.reader.holds(CommitId(commit))]
        raws = zip(held, self.reader.read(held), strict=True)
        first = {commit for commit, raw in raws if not parse(commit, raw).parents}
        if first:
            self._mirror.write_shallow(CommitId(commit) for commit in listed if commit not in first)

    def local(self, arguments: Sequence[str], *, stdin: bytes | None = None) -> bytes:
        """Run a command on the mirror alone. If it fails the mirror is broken, and is made anew."""
        done = self.runner.run(arguments, stdin=stdin)
        if done.status:
            self._renew()
            raise Transient(f"git {arguments[0]} in the mirror: {done.stderr.strip()} (it will be fetched anew)")
        return done.stdout

    def failure(self, doing: str, done: Output) -> OverspillError:
        """Return the error of a failed command that talks to the remote.

        A broken mirror has been made anew when this returns.
        """
        stderr = self.remote.redact(done.stderr)
        if _BROKEN.search(stderr):
            self._renew()
            return Transient(f"{doing}: the mirror is broken and will be fetched anew: {stderr.strip()}")
        return remote_errors.failure(doing, stderr, self.remote)

    def incomplete(self, missing: Missing) -> Transient:
        """Make the mirror anew because an object is missing, and return the error."""
        self._renew()
        return Transient(f"reading object {missing}: the mirror is incomplete and will be fetched anew")

    def forget_aside(self) -> None:
        """Remove mirrors that were put aside, once no branch is in doubt; what else reads them comes before."""
        if not self.known.doubtful():
            self._mirror.forget_aside()

    def pack(self, *, above: int) -> None:
        """Repack small packs if there are more than `above` packs."""
        if self._mirror.packs() > above:
            self.local(["repack", "-d", "-q", "--geometric=2", "--no-write-bitmap-index"])

    def _cluster_refspecs(self) -> list[str]:
        """Write the refspecs of the branches of clusters, without those of people as far as they have been seen.

        A fetch of one of these would cost each pass its history, and with a depth cut off what the output branch had.
        """
        left_out = sorted(self._foreign)[:_MOST_LEFT_OUT]
        return [f"{self._clusters}*:{self.known.cluster_refs}*", *(f"^{branch}" for branch in left_out)]

    def _fetch_both(self) -> Output:
        """Fetch both branches, and the branches of clusters if they were read last time, in one process.

        Branches of ours are neither forced nor pruned.
        """
        self._output_gone = False
        wanted = [f"+{self.source}:{SOURCE}", f"{self.output}:{self.known.output_ref}"]
        if self._branches is not None:
            wanted = ["--verbose", *wanted, *self._cluster_refspecs()]  # names also those without news
        return self.runner.run([*FETCH, address.NAME, *wanted], remote=True)

    def _fetch_listed(self, doing: str) -> Output:
        """List which of both branches exist, and fetch those, a new one without its history.

        Branches of clusters are dropped until `branches` is called again.
        """
        self._branches = None
        listed = self.runner.run(["ls-remote", "--heads", address.NAME, self.source, self.output], remote=True)
        if listed.status:
            raise self.failure(doing, listed)
        names = parse_remote_refs(listed.stdout)
        fetched: list[str] = []
        new: list[str] = []
        if self.source in names:
            (fetched if self.tips.source else new).append(f"+{self.source}:{SOURCE}")
        elif self.tips.source:
            self.local(["update-ref", "-d", SOURCE])
        self._output_gone = self.output not in names
        if not self._output_gone:
            (fetched if self.tips.output else new).append(f"{self.output}:{self.known.output_ref}")
        done = listed
        for depth, refspecs in (([], fetched), (["--depth=1"], new)):
            if refspecs:
                done = self.runner.run([*FETCH, *depth, address.NAME, *refspecs], remote=True)
                if done.status:
                    return done
        return done

    def _gone(self, done: Output) -> bool:
        """Return whether a fetch shows that the remote lacks a branch that is known."""
        if self._branches is None:
            return self._output_gone and self.tips.output is not None
        fetched = set(_FETCHED.findall(done.stderr))
        return any(f"{self.known.cluster_refs}{cluster}" not in fetched for cluster in self._branches)

    def _judge(self) -> None:
        """Judge the branches that do not follow what is known of them, and read the refs as that leaves them."""
        self.known.judge(with_clusters=self._branches is not None)
        if not self._take_refs():
            self._renew()
            raise Transient(f"comparing branches of {self.remote.shown}: the mirror is broken and will be fetched anew")

    def _take_refs(self) -> bool:
        """Read the refs of the mirror; False if it is broken."""
        fields = "--format=%(refname) %(objectname) %(committerdate:unix) %(tree) %(objecttype)"
        followed = [] if self._branches is None else [self.known.cluster_refs]
        listed = self.runner.run(["for-each-ref", fields, SOURCE, self.known.output_ref, *followed])
        lines = (line.split(" ") for line in listed.stdout.decode(errors="surrogateescape").split("\n") if line)
        refs = {line[0]: line for line in lines}
        if others := [ref for ref in refs if ref != SOURCE and not is_known_ref(ref)]:
            self._forget(others)
            refs = {ref: line for ref, line in refs.items() if ref not in others}
        source, output = refs.get(SOURCE), refs.get(self.known.output_ref)
        self._refuse_other_objects(refs.values())
        if listed.status == 0:
            self.tips = Tips(
                source=CommitId(source[1]) if source else None,
                output=CommitId(output[1]) if output else None,
                output_at=read_date(output[2]) if output else None,
                losses=tuple(self.known.losses.values()),
            )
            if self._branches is not None:
                names = (
                    (ref.removeprefix(self.known.cluster_refs), line)
                    for ref, line in refs.items()
                    if ref.startswith(self.known.cluster_refs)
                )
                branches = {ClusterName(name): _branch(line) for name, line in names}
                try:
                    self._branches = self._marked(branches)
                except Missing:
                    return False
        return listed.status == 0

    def _marked(self, branches: Mapping[ClusterName, Branch]) -> Mapping[ClusterName, Branch]:
        """Mark the branches that are a person's. Raises Missing for an object that the mirror lacks."""
        held = self.directories([branch.tree for branch in branches.values()])
        return {
            cluster: replace(branch, is_foreign=cluster not in inside and branch.tree != alone(cluster, None))
            for (cluster, branch), inside in zip(branches.items(), held, strict=True)
        }

    def _forget(self, refs: Sequence[str]) -> None:
        """Remove the refs of branches that are of no cluster; a cluster's branch below or above one could have none."""
        self._foreign.update(map(self.known.branch, refs))
        lines = b"".join(b"delete " + ref.encode(errors="surrogateescape") + b"\0\0" for ref in refs)
        self.runner.run(["update-ref", "--stdin", "-z"], stdin=lines)

    def _refuse_other_objects(self, refs: Iterable[Sequence[str]]) -> None:
        """Raise InvalidInput for a branch that is no commit; the next fetch begins anew, as it may be mended then."""
        names = {SOURCE: self.source, self.known.output_ref: self.output}
        for ref, *_, kind in refs:
            if kind != "commit":
                cluster = ClusterName(ref.removeprefix(self.known.cluster_refs))
                branch = names.get(ref, f"{self._clusters}{cluster}").removeprefix("refs/heads/")
                earlier = (self._branches or {}).get(cluster)
                known = self.tips.output if ref == self.known.output_ref else (earlier.commit if earlier else None)
                self._renew({ref: known})
                raise InvalidInput(
                    f"reading {self.remote.shown}: its branch {branch} points to a {kind}, not to a commit"
                    " (delete it there, or choose another branch)"
                )

    def _renew(self, overwritten: Mapping[str, CommitId | None] | None = None) -> None:
        """Replace the mirror by an empty one, which the next fetch fills; raises Transient where it has to stay."""
        self.known.remember(overwritten or {})
        self.reader.close()
        self._mirror.throw_away(put_aside=self.known.doubtful())
        self.renewals += 1
        self.tips = Tips(source=None, output=None)
        self._branches = None
        made = self.runner.run(["init", "-q", "--bare", "--template=", str(self.runner.git_dir)])
        if made.status:
            raise Transient(f"making the mirror {self.runner.git_dir}: {made.stderr.strip()}")


def _is_unfollowed(done: Output) -> bool:
    """Return whether a fetch has failed for nothing but branches that do not follow their known tips."""
    return done.status != 0 and "fatal:" not in done.stderr and _NOT_FOLLOWING.search(done.stderr) is not None


def _branch(line: Sequence[str]) -> Branch:
    """Parse a line of ``for-each-ref``."""
    _, commit, at, tree, _ = line
    return Branch(commit=CommitId(commit), tree=TreeId(tree), at=read_date(at))


def branch_ref(branch: str) -> str:
    """Return the full name of a branch; raises InvalidInput for a name that git or a refspec reads differently."""
    name = branch.removeprefix("refs/heads/")
    if not is_branch_name(name):
        raise InvalidInput(f"branch {branch!r}: not a branch name (try 'main')")
    return f"refs/heads/{name}"
