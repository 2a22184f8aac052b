"""The fleet repository as `ports.Repository` asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from reconciler.adapters.git import remote as address
from reconciler.adapters.git.commits import parse
from reconciler.adapters.git.fastimport import stream
from reconciler.adapters.git.history import History
from reconciler.adapters.git.mirror import Mirror
from reconciler.adapters.git.objects import Missing, ObjectReader, parse_changes, parse_entries
from reconciler.adapters.git.remote import Credentials
from reconciler.adapters.git.run import Output, Runner
from reconciler.errors import Conflict, InvalidInput, OverspillError, Transient
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.tree import Commit, Entry, FileChange, Identity, LoggedCommit, Tips

COMMITTER = Identity(name="Overspill", email="overspill@overspill.dev")
"""Who makes our commits, unless configured."""

_SOURCE = "refs/overspill/source"
_OUTPUT = "refs/overspill/output"
_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
_BROKEN = re.compile(
    r"not a git repository: |bad object|corrupt|is empty|unable to read|missing (blob|tree|commit)|invalid sha1 pointer"
    r"|bad config|unresolved deltas|did not send all necessary objects|could not parse|unable to parse|inflate"
)
"""What git says of a mirror that is damaged; of one that is not, a fetch fails for the remote's sake."""

_FETCH = ("fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--progress")
_MAX_PACKS = 40
"""As many packs as looking into each of them may cost before they are put together."""

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.askPass": "true",
    "core.logAllRefUpdates": "false",
    "maintenance.auto": "false",
    "gc.autoDetach": "false",
    "gc.autoPackLimit": "0",
    "fetch.writeCommitGraph": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "push.followTags": "false",
    "push.gpgSign": "false",
    "protocol.version": "2",
    "advice.fetchShowForcedUpdates": "false",
    # Objects stay in the one pack that fast-import writes anyway: unpacking costs a process and more files.
    "fastimport.unpackLimit": "1",
}


class GitRepository:
    """A mirror of the two branches in `cache`, and the remote behind it.

    Fetched with the last commit only; the past is brought in when it is asked for. Not for several threads at once. A
    second process on the same cache gets a mirror of its own. `committer` makes every commit and tells ours from
    others; `timeout` is how long the remote may stay silent.
    """

    def __init__(
        self,
        url: str,
        *,
        cache: Path,
        source_branch: str = "main",
        output_branch: str = "placements",
        committer: Identity = COMMITTER,
        credentials: Credentials | None = None,
        timeout: timedelta = timedelta(seconds=60),
    ) -> None:
        """Check the address and the branch names, and take the mirror's directory; nothing is fetched yet.

        Raises InvalidInput for an address or a name that git must not see, Transient when the cache cannot be written.
        """
        self._remote = address.checked(url, credentials)
        self._source = _branch_ref(source_branch)
        self._output = _branch_ref(output_branch)
        if self._source == self._output:
            raise InvalidInput(f"branches: {source_branch!r} cannot be both read and written (try 'placements')")
        self._committer = committer
        self._tips = Tips(source=None, output=None)
        self._written: tuple[CommitId | None, frozenset[CommitId]] = (None, frozenset())
        self._ours: tuple[CommitId, CommitId | None] | None = None
        try:
            self._mirror = Mirror(cache, self._remote.url)
        except OSError as error:
            raise Transient(f"opening the mirror in {cache}: {error}") from error
        self._runner = Runner(
            git_dir=self._mirror.git_dir,
            # The refspec makes a push move our ref along with the remote's.
            settings={
                **_SETTINGS,
                **self._remote.settings(),
                f"remote.{address.NAME}.fetch": f"+{self._output}:{_OUTPUT}",
            },
            environment=self._remote.environment(),
            silence=timeout,
        )
        self._reader = ObjectReader(self._runner)
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the reading process and let the mirror's directory go."""
        self._reader.close()
        self._mirror.close()

    def fetch(self) -> Tips:
        """Bring both branches up to date and return where they stand.

        Raises Transient when the remote is away or hangs, InvalidInput when it does not exist or does not let us in.
        """
        doing = f"fetching {self._remote.url}"
        look = False
        for _ in range(3):
            output = self._fetch_found(doing) if look or None in self._known() else self._fetch_known()
            if output.status == 0:
                if "-> refs/overspill/" in output.stderr:
                    self._take_refs()
                return self._tips
            # A branch is gone, or went between two questions: look again at what there is.
            look = "couldn't find remote ref" in output.stderr
            if not look and not _BROKEN.search(output.stderr):
                raise self._failure(doing, output)
            if not look:
                self._renew()
        raise Transient(f"{doing}: the branches come and go, or the mirror cannot be kept")

    def tips(self) -> Tips:
        """Return where the branches stood when last fetched or pushed."""
        return self._tips

    def entries(self, commit: CommitId, *, under: Sequence[str] = (), sizes: bool = False) -> list[Entry]:
        """List the regular files of a commit, sorted by path, below the given directories (none given: all)."""
        flags = ["-r", "-z", "-l"] if sizes else ["-r", "-z"]
        listing = self._local(["ls-tree", *flags, "--", _checked_id(commit), *under])
        return parse_entries(listing, sizes=sizes)

    def changes(self, old: CommitId, new: CommitId, *, under: Sequence[str] = ()) -> list[FileChange]:
        """List the files that differ between two commits, sorted by path."""
        flags = ["-r", "--raw", "-z", "--no-renames", "--no-abbrev"]
        return parse_changes(self._local(["diff-tree", *flags, _checked_id(old), _checked_id(new), "--", *under]))

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Read the contents of blobs that some fetched commit holds."""
        wanted = list(dict.fromkeys(blobs))
        for blob in wanted:
            _checked_id(blob)
        try:
            return dict(zip(wanted, self._reader.read(wanted), strict=True))
        except Missing as missing:
            raise self._incomplete(missing) from missing

    def last_written(self, tip: CommitId) -> CommitId | None:
        """Find the newest commit at or before `tip`, along first parents, that Overspill made itself."""
        if self._ours is None or self._ours[0] != tip:
            past = self._history(tip).first_parents(_checked_id(tip))
            try:
                found = next((commit.logged.id for commit in past if self._is_ours(commit.logged)), None)
            except Missing as missing:
                raise self._incomplete(missing) from missing
            self._ours = (tip, found)
        return self._ours[1]

    def log(self, tip: CommitId, *, since: datetime | None = None, limit: int | None = None) -> list[LoggedCommit]:
        """Read commits back from `tip`, newest first, down to the given time or number."""
        try:
            return self._history(tip).log(_checked_id(tip), since=since, limit=limit)
        except Missing as missing:
            raise self._incomplete(missing) from missing

    def earlier(self, commit: CommitId, path: str, *, limit: int = 20) -> list[BlobId]:
        """List earlier versions of one file before the one at `commit`, along first parents, newest first."""
        try:
            return self._history(commit).earlier(_checked_id(commit), path, limit=limit)
        except Missing as missing:
            raise self._incomplete(missing) from missing

    def write(self, base: CommitId | None, commits: Sequence[Commit]) -> list[CommitId]:
        """Write commits on top of `base` (None: a new root) into the mirror, and return their ids in order."""
        if not commits:
            return []
        after = None if base is None else self._committed_at(base)
        output = self._local(["fast-import", "--quiet", "--done"], stdin=stream(base, after, commits, self._committer))
        made = [CommitId(line) for line in output.decode().split()]
        self._written = (base, frozenset(made))
        return made

    def push(self, new: CommitId, *, old: CommitId | None) -> None:
        """Move the output branch from `old` to `new` on the remote, fast-forward only.

        The lease says what the remote must still have, so a branch that somebody set back or removed meanwhile is not
        put forward again; that `new` descends from `old` is made sure of here, so the lease never becomes a force.
        """
        branch = self._output.removeprefix("refs/heads/")
        doing = f"pushing {branch} to {self._remote.url}"
        _checked_id(new)
        if self._tips.output != old:
            raise Conflict(f"{doing}: the branch has moved since this was decided")
        if old is not None and not self._descends(new, old):
            raise Conflict(f"{doing}: {new[:12]} does not follow {old[:12]}")
        lease = f"--force-with-lease={self._output}:{old or ''}"
        push = ["push", "--porcelain", "--progress", "--no-verify", lease, address.NAME, f"{new}:{self._output}"]
        output = self._runner.run(push, remote=True)
        if output.status:
            raise self._rejection(doing, output)
        self._tips = Tips(source=self._tips.source, output=new, output_at=self._stored(new).at)

    def maintain(self) -> None:
        """Put small packs together and let git clear away what nothing refers to, where there is need."""
        if self._mirror.small_packs() > _MAX_PACKS:
            self._local(["repack", "-d", "-q", "--geometric=2", "--no-write-bitmap-index"])
        self._local(["gc", "--auto", "--quiet"])

    def _known(self) -> tuple[CommitId | None, CommitId | None]:
        """Return the commits of both branches."""
        return self._tips.source, self._tips.output

    def _fetch_known(self) -> Output:
        """Ask for both branches in one process, which says nothing when nothing is new."""
        wanted = [f"+{self._source}:{_SOURCE}", f"+{self._output}:{_OUTPUT}"]
        return self._runner.run([*_FETCH, address.NAME, *wanted], remote=True)

    def _fetch_found(self, doing: str) -> Output:
        """Ask which of the branches there are, and fetch those, one that is new to us without its past."""
        listed = self._runner.run(["ls-remote", "--heads", address.NAME, self._source, self._output], remote=True)
        if listed.status:
            raise self._failure(doing, listed)
        names = {line.partition(b"\t")[2].decode(errors="replace") for line in listed.stdout.splitlines()}
        said = ""
        for ours, theirs, tip in zip((_SOURCE, _OUTPUT), (self._source, self._output), self._known(), strict=True):
            if theirs in names:
                depth = [] if tip else ["--depth=1"]
                output = self._runner.run([*_FETCH, *depth, address.NAME, f"+{theirs}:{ours}"], remote=True)
                if output.status:
                    return output
                said += output.stderr
            elif tip:
                self._local(["update-ref", "-d", ours])
                said += f"-> {ours}"
        return Output(status=0, stdout=b"", stderr=said)

    def _history(self, tip: CommitId) -> History:
        """Return the past of the branch that a commit was fetched from."""
        branch = self._source if tip == self._tips.source else self._output
        return History(self._reader, self._local, self._mirror.shallow, lambda count: self._deepen(branch, count))

    def _deepen(self, branch: str, count: int) -> None:
        """Bring in older commits of a branch, leaving our refs where they are even if the branch has moved."""
        doing = f"fetching the history of {branch.removeprefix('refs/heads/')}"
        output = self._runner.run([*_FETCH, "--refmap=", f"--deepen={count}", address.NAME, branch], remote=True)
        if "couldn't find remote ref" in output.stderr:
            raise Conflict(f"{doing}: the branch is gone")
        if output.status:
            raise self._failure(doing, output)

    def _rejection(self, doing: str, output: Output) -> OverspillError:
        """Make the error for a push that did not succeed."""
        lines = output.stdout.decode(errors="replace").splitlines()
        summary = next((line.split("\t", 2)[2] for line in lines if line.startswith("!\t")), "")
        stderr = self._remote.redact(output.stderr)
        return address.rejection(doing, summary, stderr) if summary else address.failure(doing, stderr)

    def _failure(self, doing: str, output: Output) -> OverspillError:
        """Make the error for a command that could not speak to the remote."""
        return address.failure(doing, self._remote.redact(output.stderr))

    def _local(self, arguments: Sequence[str], *, stdin: bytes | None = None) -> bytes:
        """Run a command that needs the mirror only. It fails only if the mirror is broken, so that goes with it."""
        output = self._runner.run(arguments, stdin=stdin)
        if output.status:
            self._renew()
            raise Transient(f"git {arguments[0]} in the mirror: {output.stderr.strip()} (it will be fetched anew)")
        return output.stdout

    def _open(self) -> None:
        """Take over the mirror that is there, or make one."""
        if self._mirror.exists():
            try:
                self._take_refs()
            except Transient:
                return  # it has been made anew
        else:
            self._renew()

    def _renew(self) -> None:
        """Throw the mirror away and make an empty one; the next fetch fills it."""
        self._reader.close()
        self._mirror.throw_away()
        self._tips = Tips(source=None, output=None)
        self._ours = None
        output = self._runner.run(["init", "-q", "--bare", "--template=", str(self._mirror.git_dir)])
        if output.status:
            raise Transient(f"making the mirror {self._mirror.git_dir}: {output.stderr.strip()}")

    def _take_refs(self) -> None:
        """Read where the mirror's refs stand."""
        listed = self._local(
            ["for-each-ref", "--format=%(refname) %(objectname) %(committerdate:unix)", _SOURCE, _OUTPUT]
        )
        refs = {line[0]: line for line in (line.split(" ") for line in listed.decode().splitlines())}
        source, output = refs.get(_SOURCE), refs.get(_OUTPUT)
        self._tips = Tips(
            source=CommitId(source[1]) if source else None,
            output=CommitId(output[1]) if output else None,
            output_at=datetime.fromtimestamp(int(output[2]), UTC) if output else None,
        )

    def _committed_at(self, commit: CommitId) -> datetime:
        """Return the committer time of a commit in the mirror."""
        if commit == self._tips.output and self._tips.output_at is not None:
            return self._tips.output_at
        return self._stored(commit).at

    def _stored(self, commit: CommitId) -> LoggedCommit:
        """Read one commit of the mirror."""
        try:
            (raw,) = self._reader.read([_checked_id(commit)])
        except Missing as missing:
            raise self._incomplete(missing) from missing
        return parse(commit, raw).logged

    def _incomplete(self, missing: Missing) -> Transient:
        """Make the mirror anew because an object is missing from it, and return the error that says so."""
        self._renew()
        return Transient(f"reading object {missing}: the mirror is incomplete and will be fetched anew")

    def _is_ours(self, commit: LoggedCommit) -> bool:
        """Tell whether Overspill made a commit: a person who amends or picks one becomes its committer."""
        return "Overspill-Action" in commit.trailers and commit.committer.email == self._committer.email

    def _descends(self, new: CommitId, old: CommitId) -> bool:
        """Tell whether `new` follows `old`; of what was just written that is known."""
        base, made = self._written
        if base == old and new in made:
            return True
        return self._runner.run(["merge-base", "--is-ancestor", old, new]).status == 0


def _checked_id(one: str) -> CommitId:
    """Refuse what is no object id: git would take an empty one for a deletion and one with a dash for an option."""
    if _OBJECT_ID.fullmatch(one) is None:
        raise ValueError(f"{one!r} is not a full object id")
    return CommitId(one)


def _branch_ref(branch: str) -> str:
    """Return the full name of a branch; raises InvalidInput for what git or a refspec would read differently."""
    name = branch.removeprefix("refs/heads/")
    parts = name.split("/")
    if not _BRANCH_NAME.fullmatch(name) or ".." in name or any(part.endswith((".", ".lock")) for part in parts):
        raise InvalidInput(f"branch {branch!r}: not a branch name (try 'main')")
    return f"refs/heads/{name}"
