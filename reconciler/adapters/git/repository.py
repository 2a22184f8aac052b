"""The fleet repository (a `ports.Repository`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from reconciler.adapters.git import push, restore
from reconciler.adapters.git import remote as address
from reconciler.adapters.git.branch_judge import KnownTip
from reconciler.adapters.git.branches import RemoteBranches, branch_ref
from reconciler.adapters.git.commits import StoredCommit, parse
from reconciler.adapters.git.delivery_refs import DeliveryRefs
from reconciler.adapters.git.fastimport import projected_stream, stream
from reconciler.adapters.git.history import History
from reconciler.adapters.git.known_refs import cluster_refs, output_ref
from reconciler.adapters.git.mirror import SETTINGS, Mirror
from reconciler.adapters.git.objects import (
    MirrorFiles,
    Missing,
    checked_id,
    parse_changes,
    parse_changes_by_commit,
    parse_checks,
    parse_entries,
    parse_obstacles,
    parse_other_entries,
)
from reconciler.adapters.git.push import RefUpdate, RefusedMoves, doing
from reconciler.adapters.git.refused_branches import RefusedBranches
from reconciler.adapters.git.remote import Credentials
from reconciler.adapters.git.restore import Restoration, Writing
from reconciler.adapters.git.rewritten_source import RewrittenSource
from reconciler.adapters.git.run import RemoteBounds, Runner
from reconciler.adapters.git.signed_source import SignedSource
from reconciler.adapters.git.signing import AllowedSigners, SigningKey, open_signer, scratch_directory, signed
from reconciler.core.commits.branch_loss import refusal
from reconciler.core.commits.commit_date import date_after
from reconciler.core.commits.trailers import is_own
from reconciler.core.fleet.path_history import PathHistories
from reconciler.errors import Conflict, InvalidInput, OverspillError, Transient
from reconciler.model.bounds import SOURCE_HISTORY
from reconciler.model.branch_loss import ReportedCommit
from reconciler.model.ids import BlobId, ClusterName, CommitId, TreeId
from reconciler.model.tree import (
    AddedFiles,
    Advance,
    Branch,
    BranchSection,
    Commit,
    FileChange,
    Identity,
    LoggedChanges,
    LoggedCommit,
    Projection,
    Proposal,
    Tips,
    TreeEntry,
    alone,
    branch_of,
)
from reconciler.ports import MeasureCall, unmeasured_call

COMMITTER = Identity(name="Overspill", email="overspill@overspill.dev")
"""The default committer."""

_MAX_PACKS = 40
"""Packs above which they are repacked, since each look-up searches all of them."""


class GitRepository:
    """A mirror of the two branches in `cache`, and the remote behind it.

    It is fetched with the last commit only, and deepened when history is needed. Not safe for several threads, except
    for its `shelf` and its `deliveries`. A second process on the same cache gets a mirror of its own, and does not own
    the remote's `directory` below it; what the first one knows of our branches counts for it. `main_cache` is the cache
    of the passes, for a repository beside them with another one. `committer` is the committer of our commits, by which
    they are recognised; `bounds` are those of one exchange with the remote, or `timeout` alone is that of its silence;
    a fetch is given up once `ended`. `measure` measures the commands that talk to it.
    """

    def __init__(
        self,
        url: str,
        *,
        cache: Path,
        main_cache: Path | None = None,
        source_branch: str = "main",
        output_branch: str = "placements",
        committer: Identity = COMMITTER,
        credentials: Credentials | None = None,
        signing: SigningKey | None = None,
        trailers: Sequence[str] = (),
        allowed_signers: AllowedSigners | None = None,
        timeout: timedelta = timedelta(seconds=60),
        bounds: RemoteBounds | None = None,
        ended: Callable[[], bool] = lambda: False,
        measure: MeasureCall = unmeasured_call,
    ) -> None:
        """Check the address and the branch names, and lock the mirror's directory; nothing is fetched yet.

        Raises InvalidInput for an unsafe address or name and for a cache that other users can write to, Transient if we
        cannot write to it.
        """
        remote = address.check_address(url, credentials)
        source, output = branch_ref(source_branch), branch_ref(output_branch)
        if source == output:
            raise InvalidInput(f"branches: {source_branch!r} cannot be both read and written (try 'placements')")
        clusters = branch_of(output, "")
        if f"{source}/".startswith(clusters):
            raise InvalidInput(f"branches: {source_branch!r} is where clusters have theirs (try 'main')")
        try:
            mirror = Mirror(cache.absolute(), remote.url, main=main_cache.absolute() if main_cache else None)
        except OSError as error:
            raise Transient(f"opening the mirror in {cache}: {error}") from error
        # By these refspecs a push moves the refs of the mirror along with the remote's.
        settings = [*SETTINGS.items(), *remote.settings().items()]
        settings += [
            (f"remote.{address.NAME}.fetch", refspec)
            for refspec in (f"{output}:{output_ref(output)}", f"{clusters}*:{cluster_refs(output)}*")
        ]
        runner = Runner(
            git_dir=mirror.git_dir,
            settings=settings,
            environment=remote.environment(),
            bounds=bounds or RemoteBounds(silence=timeout),
            ended=ended,
            measure=measure,
        )
        self.directory, self.owns_directory = mirror.shared, not mirror.private
        self._committer = committer
        self._signing = signing
        self._signs = ""
        """The content of the key that has signed in a rehearsal."""
        self._trailers = tuple(trailers)
        self.shelf = MirrorFiles(runner)
        self.deliveries = DeliveryRefs(runner, remote, self._refuse_lost)
        try:
            self._branches = RemoteBranches(
                remote, mirror, runner, committer, source=source, output=output, clusters=clusters
            )
        except OverspillError:
            mirror.close()
            raise
        self._signed_source = SignedSource(self._branches, allowed_signers, committer) if allowed_signers else None
        self._rewritten = RewrittenSource(self._branches, committer, self._signed_source)
        self._written: tuple[CommitId | None, frozenset[CommitId]] = (None, frozenset())
        self._on_source: frozenset[CommitId] = frozenset()
        self._projected: dict[CommitId, tuple[CommitId | None, Branch]] = {}
        self._refused = RefusedBranches()
        self._ours: tuple[tuple[int, CommitId], CommitId | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the reading processes and unlock the mirror's directory."""
        self.shelf.close()
        self._branches.close()

    def fetch(self) -> Tips:
        """Fetch both branches and return their tips.

        Raises Transient if the remote is unreachable or hangs, InvalidInput if it is missing or denies access, or if
        signatures are required and no commit of the source branch has ever been in force.
        """
        tips = self._trusted(self._branches.fetch(), fetched=True)
        self._rewritten.note(tips.source)
        self._branches.forget_aside()
        return replace(tips, refused=self._refused.refusals)

    def fetch_commit(self, commit: CommitId) -> None:
        """Fetch a commit of any branch by its id, where the mirror lacks it.

        Raises Transient and InvalidInput as `fetch` does, and InvalidInput for a commit that the remote does not have.
        """
        if not self._branches.reader.holds(checked_id(commit)):
            self._branches.fetch_commit(commit)

    def propose(self, branch: str) -> Proposal:
        """Fetch a branch of the remote, and find the newest commit that it shares with the source branch.

        Raises InvalidInput for a name that is none of a branch for people, for a missing branch and for one without a
        shared commit, and Transient as `fetch` does.
        """
        return self._branches.propose(branch_ref(branch))

    def tips(self) -> Tips:
        """Return the tips of the last fetch or push; where signatures are required, the source is what is in force."""
        return replace(self._trusted(self._branches.tips), refused=self._refused.refusals)

    def branch_names(self) -> list[str]:
        """List the branches of the remote that are not ours."""
        return self._branches.branch_names()

    def entries(
        self, commit: CommitId, *, under: Sequence[str] = (), sizes: bool = False, others: bool = False
    ) -> list[TreeEntry]:
        """List the regular files of a commit, sorted by path, below some directories (none: all); then `others`.

        An older commit of the source branch is fetched where the mirror lacks it. Raises InvalidInput for a commit that
        is not in the history of that branch, as far as that is searched.
        """
        flags = ["-r", "-z", "-l"] if sizes else ["-r", "-z"]
        arguments = ["ls-tree", *flags, "--", checked_id(commit), *under]
        done = self._branches.runner.run(arguments)
        listing = done.stdout
        if done.status:
            kind = self._branches.runner.run(["cat-file", "-t", commit]).stdout.strip()
            if kind != b"commit" and not self._is_earlier(commit):
                place = "in the history" if self._is_source_whole() else f"among the last {SOURCE_HISTORY}"
                raise InvalidInput(f"commit {commit[:12]} is not {place} of the fleet repository's source branch")
            listing = self._branches.local(arguments)
        return [*parse_entries(listing, sizes=sizes), *(parse_other_entries(listing) if others else ())]

    def obstacles(self, commit: CommitId, directories: Iterable[str]) -> Mapping[str, str]:
        """Find those paths of a commit that hold a file, a link or a submodule in place of a directory."""
        listing = self._branches.local(["ls-tree", "-z", checked_id(commit), "--", *sorted(set(directories))])
        return parse_obstacles(listing)

    def changes(self, old: CommitId, new: CommitId, *, under: Sequence[str] = ()) -> list[FileChange]:
        """List the files that differ between two commits, sorted by path.

        Raises Conflict if the mirror does not hold `old`, for example after a rewritten history.
        """
        if not self._branches.reader.holds(checked_id(old)):
            raise Conflict(f"comparing with {old[:12]}: that commit is not in the branch's history any more")
        flags = ["-r", "--raw", "-z", "--no-renames", "--no-abbrev"]
        return parse_changes(
            self._branches.local(["diff-tree", *flags, checked_id(old), checked_id(new), "--", *under])
        )

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Read blobs of fetched commits."""
        wanted = list(dict.fromkeys(blobs))
        for blob in wanted:
            checked_id(blob)
        with self._whole():
            return dict(zip(wanted, self._branches.reader.read(wanted), strict=True))

    def held(self, places: Collection[tuple[CommitId, str]]) -> Mapping[tuple[CommitId, str], BlobId | None]:
        """Find the blobs of files at commits in one call, None for a missing file; unknown commits are left out."""
        if not places:
            return {}
        commits = sorted({checked_id(commit) for commit, _ in places})
        wanted = sorted(places)
        asked = [*(f"{commit}^{{commit}}" for commit in commits), *(f"{commit}:{path}" for commit, path in wanted)]
        answers = self._branches.local(
            ["cat-file", "--batch-check"], stdin="".join(f"{object_id}\n" for object_id in asked).encode()
        )
        blobs = parse_checks(answers)
        here = {commit for commit, blob in zip(commits, blobs, strict=False) if blob is not None}
        files = zip(wanted, blobs[len(commits) :], strict=True)
        return {place: blob for place, blob in files if place[0] in here}

    def last_written(self, tip: CommitId) -> CommitId | None:
        """Find the newest commit at or before `tip`, along first parents, that Overspill made itself."""
        # The cached commit is valid for this mirror only; a mirror made anew may lack it.
        asked = (self._branches.renewals, tip)
        if self._ours is None or self._ours[0] != asked:
            past = self._history(tip).first_parents(checked_id(tip))
            with self._whole():
                commit_id = next((commit.logged.id for commit in past if self._is_ours(commit.logged)), None)
            self._ours = (asked, commit_id)
        return self._ours[1]

    def log(
        self,
        tip: CommitId,
        *,
        since: datetime | None = None,
        limit: int | None = None,
        base: CommitId | None = None,
    ) -> list[LoggedCommit]:
        """Read commits back from `tip`, newest first, down to the given time or number, and without those of `base`."""
        with self._whole():
            return self._history(tip).log(
                checked_id(tip), since=since, limit=limit, base=None if base is None else checked_id(base)
            )

    def commits_after(self, base: CommitId | None, tip: CommitId) -> list[LoggedCommit] | None:
        """Read the commits between two of the output branch, along first parents, oldest first.

        None where `base` is not in the history of `tip`, as after that was rewritten. Without a base it is all of it.
        """
        commits: list[LoggedCommit] = []
        with self._whole():
            for commit in self._history(tip).first_parents(checked_id(tip)):
                if commit.logged.id == base:
                    return commits[::-1]
                commits.append(commit.logged)
        return commits[::-1] if base is None else None

    def section(
        self,
        tip: CommitId,
        *,
        since: datetime,
        base: CommitId | None = None,
        under: Sequence[str] = (),
        limit: int | None = None,
    ) -> BranchSection:
        """Read a branch back along first parents from `tip`, with the files that each commit changed."""
        below: LoggedCommit | None = None
        chain: list[StoredCommit] = []
        most = None if limit is None else max(limit, SOURCE_HISTORY.most) + 1
        with self._whole():
            for commit in self._history(tip).first_parents(checked_id(tip), most=most):
                ended = commit.logged.id == base or len(chain) == limit
                if ended or (commit.logged.at < since and self._is_ours(commit.logged)):
                    below = commit.logged
                    break
                chain.append(commit)
        if below is None and chain and chain[-1].parents and not self._branches.reader.holds(chain[-1].parents[0]):
            below = chain.pop().logged  # of a lost branch, of which nobody holds more
        pairs = "".join(f"{' '.join((commit.logged.id, *commit.parents[:1]))}\n" for commit in chain)
        flags = ["--stdin", "--root", "-r", "--raw", "-z", "--no-renames", "--no-abbrev"]
        listing = self._branches.local(["diff-tree", *flags, "--", *under], stdin=pairs.encode()) if chain else b""
        files = parse_changes_by_commit(listing)
        changes = (
            LoggedChanges(commit=commit.logged, files=files.get(commit.logged.id, ())) for commit in reversed(chain)
        )
        return BranchSection(base=below, commits=tuple(changes))

    def earlier(self, commit: CommitId, path: str, *, limit: int = 20) -> list[BlobId]:
        """List versions of one file before its version at `commit`, along first parents, newest first."""
        with self._whole():
            versions = self._history(commit).earlier(checked_id(commit), path, limit=limit)
            if len(versions) < limit:
                former = self._rewritten.former_version(commit, path)
                versions = [*dict.fromkeys((*versions, *former))][:limit]
            return versions

    def states(self, commit: CommitId, paths: Sequence[str], *, limit: int) -> list[Mapping[str, BlobId]]:
        """List what stood at some paths before each first-parent commit that changed any of them, newest first."""
        with self._whole():
            return self._history(commit).states(checked_id(commit), paths, limit=limit)

    def past_versions(self, commit: CommitId, paths: Collection[str], *, base: CommitId | None = None) -> PathHistories:
        """List the versions that stood at some paths before those at `commit`, along first parents."""
        with self._whole():
            history = self._history(commit)
            known = None if base is None or not history.leads_to(checked_id(commit), checked_id(base)) else base
            answer = history.past_versions(checked_id(commit), paths, base=known)
            return answer if known else self._rewritten.with_former(answer, commit, paths)

    def write(self, base: CommitId | None, commits: Sequence[Commit]) -> list[CommitId]:
        """Write commits on top of `base` (None: a new root) into the mirror, and return their ids in order."""
        if not commits:
            return []
        after = None if base is None else self._committed_at(base)
        written = self._branches.local(
            ["fast-import", "--quiet", "--done"],
            stdin=stream(
                base, after, commits, self._committer, branch=self._branches.short_output, trailers=self._trailers
            ),
        )
        made = [CommitId(line) for line in written.decode().split()]
        made = self._sign(made, made)
        self._written = (base, frozenset(made))
        if base is not None and base == self.tips().source:
            self._on_source = frozenset(made)
        return made

    def branches(self) -> Mapping[ClusterName, Branch]:
        """Return the branches of clusters, from the remote unless the last fetch included them."""
        return self._branches.branches()

    def forget_branches(self) -> None:
        """Expect nothing more of the branches of clusters: the fleet keeps none."""
        self._branches.known.forget_clusters()
        self._refused.due(())

    def due_branches(self, lacking: Collection[ClusterName]) -> frozenset[ClusterName]:
        """Return the clusters whose branch is to be pushed now, of those whose branch lacks commits."""
        return self._refused.due(lacking)

    def directories(self, commits: Sequence[CommitId]) -> list[Mapping[ClusterName, TreeId]]:
        """Return for each commit the tree ids of its cluster directories."""
        with self._whole():
            return self._branches.directories([f"{checked_id(commit)}^{{tree}}" for commit in commits])

    def project(self, projections: Sequence[Projection]) -> list[Advance]:
        """Write commits for branches of clusters into the mirror, and return the new tip of each, in order."""
        written = self._branches.local(
            ["fast-import", "--quiet", "--done"],
            stdin=projected_stream(
                projections, self._committer, output=self._branches.short_output, trailers=self._trailers
            ),
        )
        made = [CommitId(line) for line in written.decode().split()]
        if self._signing is not None:
            bases = [f"^{projection.base.commit}" for projection in projections if projection.base]
            listed = self._branches.local(["rev-list", "--topo-order", "--reverse", *made, *bases])
            made = self._sign([CommitId(line) for line in listed.decode().split()], made)
        advances: list[Advance] = []
        self._projected = {}
        for projection, new in zip(projections, made, strict=True):
            base = projection.base
            old = base.commit if base else None
            at = base.at if base else None
            for snapshot in projection.snapshots:
                at = date_after(snapshot.at, at)
            last = projection.snapshots[-1]
            stands = Branch(commit=new, tree=alone(projection.cluster, last.directory), at=at or last.at)
            self._projected[new] = (old, stands)
            advances.append(Advance(cluster=projection.cluster, old=old, new=new))
        return advances

    def refuse_unsigned(self) -> None:
        """Raise InvalidInput where commits are to be signed and their key cannot; it is tried once for each content."""
        if self._signing is not None and (content := self._signing.digest()) != self._signs:
            self.rehearse_signature()
            self._signs = content

    def begin_push(
        self, new: CommitId, *, old: CommitId | None, branches: Sequence[Advance] = ()
    ) -> Callable[[], Sequence[Advance]]:
        """Start a push of the output branch from `old` to `new` and of branches of clusters, none by force.

        Here `new` is checked to descend from `old`, since git forces a push with a lease. Branches of clusters that
        were refused before are pushed apart, after the others.
        """
        output = self._branches.output
        checked_id(new)
        self._refuse_lost()
        if self._branches.tips.output != old:
            raise Conflict(f"{doing(self._branches, output)}: the branch has moved since this was decided")
        if old is not None and not self._descends(new, old):
            raise Conflict(f"{doing(self._branches, output)}: {new[:12]} does not follow {old[:12]}")
        moves = [] if new == old and branches else [RefUpdate(branch=output, old=old, new=new)]
        apart: list[RefUpdate] = []
        stand: dict[ClusterName, Branch] = {}
        for advance in branches:
            branch = branch_of(output, advance.cluster)
            base, stands = self._projected.get(advance.new, (None, None))
            if stands is None or base != advance.old:
                raise Conflict(f"{doing(self._branches, branch)}: {advance.new[:12]} does not follow what was there")
            stand[advance.cluster] = stands
            move = RefUpdate(branch=branch, old=advance.old, new=checked_id(advance.new))
            (apart if advance.cluster in self._refused else moves).append(move)
        under_way = push.begin(self._branches, moves) if moves else dict

        def end() -> Sequence[Advance]:
            refused, rest = under_way(), list[RefUpdate]()
            if refused:
                refused, rest = push.carry_out_output(self._branches, moves, refused)
            self._branches.tips = Tips(source=self._branches.tips.source, output=new, output_at=self._committed_at(new))
            moved = self._note_moves(stand, [move for move in moves if move not in rest], refused)
            # The output branch has moved: what fails here, or has moved, is left to the next pass.
            for group in (rest, apart):
                with suppress(OverspillError):
                    moved |= self._note_moves(stand, group, push.carry_out_each(self._branches, group))
            return [advance for advance in branches if advance.cluster in moved]

        return end

    def _note_moves(
        self, stand: Mapping[ClusterName, Branch], moves: Sequence[RefUpdate], refused: RefusedMoves
    ) -> set[ClusterName]:
        """Note which branches of clusters were moved to where they `stand`, and which were refused.

        Returns the clusters of those that have moved.
        """
        pushed = {move.branch for move in moves}
        moved: dict[ClusterName, Branch] = {}
        for cluster, stands in stand.items():
            branch = branch_of(self._branches.output, cluster)
            if branch in refused:
                answer = refused[branch]
                self._refused.note_refused(cluster, branch, answer.error, is_certain=not answer.is_of_all)
            elif branch in pushed:
                self._refused.note_moved(cluster)
                moved[cluster] = stands
        self._branches.note_moved(moved)
        return {*moved}

    def heads(self, prefix: str) -> Mapping[str, CommitId]:
        """List the branches of the remote whose names begin so, with their commits."""
        heads = self._branches.heads(f"{branch_ref(prefix.rstrip('/'))}/")
        return {name.removeprefix("refs/heads/"): commit for name, commit in heads.items()}

    def added(self, commit: CommitId) -> AddedFiles:
        """Return what a commit of any branch changes on its parent; both are fetched where the mirror lacks them.

        Raises Transient and InvalidInput as `fetch_commit` does.
        """
        self.fetch_commit(commit)
        (raw,) = self._branches.reader.read([checked_id(commit)])
        parents = parse(commit, raw).parents
        if len(parents) != 1:
            return AddedFiles(parent=None)
        self.fetch_commit(parents[0])
        return AddedFiles(parent=parents[0], changes=tuple(self.changes(parents[0], commit)))

    def move_head(self, branch: str, *, old: CommitId | None, new: CommitId | None) -> None:
        """Make a branch of the remote that is neither of the two (`old` is None), move it, or remove it.

        It is removed where `new` is None.

        Raises Conflict where it has another commit than expected, and InvalidInput where the remote refuses.
        """
        self._refuse_lost()
        push.carry_out(self._branches, [RefUpdate(branch=branch_ref(branch), old=old, new=new)])

    def draft_restoration(self, *, accept: bool, now: datetime, person: Identity) -> list[Restoration]:
        """Write the commits that settle the losses of the last fetch into the mirror; see `restore.draft`."""
        losses = self._branches.known.losses
        writing = Writing(person=person, committer=self._committer, trailers=self._trailers)
        drafted = restore.draft(self._branches, losses, accept=accept, now=now, writing=writing)
        return [replace(each, new=self._sign(each.written, [each.new])[0]) for each in drafted]

    def carry_out_restoration(self, restorations: Sequence[Restoration]) -> None:
        """Push a drafted restoration. Raises Conflict where a branch has moved meanwhile."""
        restore.carry_out(self._branches, restorations)

    @property
    def has_memory(self) -> bool:
        """Whether tips of our branches have been known for a while; not so in the first hour on an empty disk."""
        return self._branches.known.has_memory

    def look_for(self, commit: CommitId, *, branch: str, reported_by: str) -> ReportedCommit:
        """Search a branch of ours for a commit; if it lacks that, it is lost from here on."""
        name = branch_ref(branch)
        ref = self._branches.known.ref(name)
        search = ["merge-base", "--is-ancestor", checked_id(commit), ref]
        if self._branches.runner.run(search).status == 0:
            return ReportedCommit.HELD
        self._branches.known.hear(KnownTip(commit=commit, reported_by=reported_by), ref)
        self._branches.fetch()
        if name != self._branches.output:
            self._branches.branches()
        if name in self._branches.known.losses:
            return ReportedCommit.LOST
        is_held = self._branches.runner.run(search).status == 0
        return ReportedCommit.HELD if is_held else ReportedCommit.GIVEN_UP

    def expect_known(self, commit: CommitId) -> CommitId:
        """Hear from a person that the output branch has had a commit; the next fetch judges the branch by it.

        Returns the commit by which it is judged, which is an earlier one where that is of another branch. Raises
        InvalidInput where it is of another branch and stands for no commit of the output branch.
        """
        known = self._branches.known
        expected = known.expected.get(known.output_ref)
        if checked_id(commit) in {expected.commit if expected else None, self._branches.tips.output}:
            return commit
        commit = known.stand_in(commit)
        if not known.claims(commit):
            known.hear(KnownTip(commit=commit), known.output_ref)
        return commit

    def named_commits(self) -> frozenset[CommitId]:
        """Return the commits that engines or people say branches have had, and that are not settled."""
        return frozenset(tip.commit for tips in self._branches.known.named.values() for tip in tips)

    def rehearse_signature(self) -> None:
        """Sign nothing in particular; see `ports.PushRehearsal`."""
        if self._signing is not None:
            with open_signer(self._signing) as signer:
                signer.sign(b"")

    def rehearse_push(self) -> None:
        """Try to push as a dry run: the tip of the output branch, or that of the source branch before it begins.

        Raises LostBranch while a branch of ours is lost.
        """
        self._refuse_lost()
        tips = self.tips()
        commit = tips.output or tips.source
        if commit is None:
            raise InvalidInput(
                f"{doing(self._branches, self._branches.output)}: there is no commit to try it with"
                " (try: push the source branch first)"
            )
        push.rehearse(self._branches, commit)

    def maintain(self) -> None:
        """Repack the small packs of many fetches and writes; does nothing while they are few."""
        self._branches.pack(above=_MAX_PACKS)

    def _sign(self, order: Sequence[CommitId], made: Sequence[CommitId]) -> list[CommitId]:
        """Sign commits, parents first, where that is asked for, and return what `made` has become."""
        if self._signing is None or not order:
            return list(made)
        new: dict[str, str] = {}
        with self._whole(), open_signer(self._signing) as signer, scratch_directory() as place:
            for number, (commit, raw) in enumerate(zip(order, self._branches.reader.read(order), strict=True)):
                new[commit], content = signed(raw, new, signer)
                (place / str(number)).write_bytes(content)
            paths = "".join(f"{place}/{number}\n" for number in range(len(order)))
            stored = self._branches.local(
                ["hash-object", "-t", "commit", "-w", "--no-filters", "--stdin-paths"], stdin=paths.encode()
            )
        if stored.decode().split() != list(new.values()):
            raise Transient("signing commits: git stored others than were signed")
        return [CommitId(new[commit]) for commit in made]

    def _trusted(self, tips: Tips, *, fetched: bool = False) -> Tips:
        """Put the commit that is in force in place of the source branch's tip, where that has to be signed."""
        return tips if self._signed_source is None else self._signed_source.in_force(tips, fetched=fetched)

    def _refuse_lost(self) -> None:
        """Raise LostBranch where a branch lacks what it is known to have had: nothing is pushed then."""
        losses = self._branches.known.losses
        if losses:
            raise refusal(tuple(losses.values()))

    def _history(self, tip: CommitId) -> History:
        """Return the history of the branch that a commit was fetched from."""
        branches = self._branches
        trusted = self._signed_source.commit if self._signed_source else None
        of_source = tip in (branches.tips.source, trusted) or tip in self._on_source
        return branches.history(branches.source if of_source else branches.output)

    def _is_earlier(self, commit: CommitId) -> bool:
        """Tell whether the source branch has a commit, and fetch as much of its history as that takes.

        A tip is one in any case: the mirror is broken where it lacks that.
        """
        source = self._branches.tips.source
        if source is None or commit in (source, self._branches.tips.output):
            return True
        with self._whole():
            return self._history(source).reaches(source, commit)

    def _is_source_whole(self) -> bool:
        """Return whether the mirror holds the whole history of the source branch."""
        source = self._branches.tips.source
        with self._whole():
            return source is None or self._history(source).is_whole(source)

    def _committed_at(self, commit: CommitId) -> datetime:
        """Return the committer time of a commit in the mirror."""
        tips = self._branches.tips
        if commit == tips.output and tips.output_at is not None:
            return tips.output_at
        with self._whole():
            (raw,) = self._branches.reader.read([checked_id(commit)])
        return parse(commit, raw).logged.at

    def _is_ours(self, commit: LoggedCommit) -> bool:
        """Tell whether a commit is ours, by its committer: amending or cherry-picking changes it."""
        return is_own(commit, self._committer)

    def _descends(self, new: CommitId, old: CommitId) -> bool:
        """Tell whether `new` descends from `old`, which is known for commits that were just written."""
        base, made = self._written
        if base == old and new in made:
            return True
        return self._branches.runner.run(["merge-base", "--is-ancestor", old, new]).status == 0

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Turn a missing object into Transient and a new mirror, which is to hold all objects of fetched commits."""
        try:
            yield
        except Missing as missing:
            raise self._branches.incomplete(missing) from missing
