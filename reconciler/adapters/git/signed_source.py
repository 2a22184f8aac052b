"""The commit of the source branch that is in force where commits have to be signed.

It is remembered in a ref of the mirror, which no push moves. Without that, as on an empty disk, the output branch says
which commit was decided on last: what follows that one and is signed may come in force.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from urllib.parse import quote

from reconciler.adapters.git.branches import RemoteBranches
from reconciler.adapters.git.commits import parse
from reconciler.adapters.git.decisions import decided_on
from reconciler.adapters.git.objects import Missing
from reconciler.adapters.git.run import Runner
from reconciler.adapters.git.signing import AllowedSigners
from reconciler.errors import InvalidInput, Transient, one_line
from reconciler.model.ids import CommitId
from reconciler.model.tree import Identity, LoggedCommit, SignatureFault, SourceTip, Tips

_MOST_UNSIGNED = 200
"""Commits that are looked at for a signature where nothing is remembered; each takes a process or two."""
_MOST_FOREIGN = 50
"""Commits of the output branch that are searched for the last decision of ours."""
_REFUSED = (SignatureFault.UNSIGNED, SignatureFault.DELISTED, SignatureFault.UNCHECKED)
"""What git says of a signature where it refuses it, and where it was kept from looking at it."""
_UNCHECKED = re.compile(
    r"^error: ((?:cannot (?:run|fork)|could not (?:create|write)|failed (?:to write|writing)).{0,300})", re.MULTILINE
)
"""Git's own lines (gpg-interface.c, run-command.c); whatever a commit holds, none of them is about that."""
_ABSENT = re.compile(r"cannot run (\S+): No such file or directory")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is in force while the source branch and the allowed signers are these."""

    tip: CommitId
    signers: str
    mirror: int
    """The mirror, by its number, that holds the ref."""
    commit: CommitId
    why: SignatureFault | None
    """Why the tip is not in force; None where it is, by its own signature."""
    said: str = ""


class UncheckedSignature(Transient):
    """Git could not look at the signature of a commit, which says nothing about the commit."""


class SignedSource:
    """Finds the commit in force.

    1. The newest commit comes in force if an allowed signer has signed it and it follows the one in force, or is the
       later of the two: who rewrites the branch and signs it means it so. An older one does not, since anybody who can
       push can push again what was signed once.
    2. Otherwise what is in force stays, also if its own signer is not allowed any more.
    3. Where nothing is remembered, the newest signed commit along first parents is taken for the newest one in 1, and
       the last one that was decided on for the one in force, if that is signed.
    """

    def __init__(self, branches: RemoteBranches, signers: AllowedSigners, committer: Identity) -> None:
        """Take whose signatures count, and the committer of our own commits; nothing is looked up."""
        self._branches = branches
        self._signers = signers
        self._committer = committer
        self._ref = f"refs/overspill/signed/{quote(branches.source.removeprefix('refs/heads/'), safe='')}"
        self._found: _Found | None = None

    @property
    def commit(self) -> CommitId | None:
        """The commit in force; None before it has been looked up."""
        return self._found.commit if self._found else None

    def in_force(self, tips: Tips, *, fetched: bool = False) -> Tips:
        """Put the commit in force in place of the source branch's tip.

        After a fetch, signatures that were refused are looked at again: what kept git from it may be over.

        Raises InvalidInput where none is, and Transient where more history has to be fetched and cannot be.
        """
        if tips.source is None:
            return tips
        signers, mirror = self._signers.digest(), self._branches.renewals
        found = self._found
        asked = tips.source, signers, mirror
        if found is None or (found.tip, found.signers, found.mirror) != asked or (fetched and found.why in _REFUSED):
            found = self._found = self._find(tips.source, signers)
        if found.why is None:
            return tips
        return replace(tips, source=found.commit, held_back=SourceTip(commit=found.tip, why=found.why, said=found.said))

    def is_signed(self, commit: CommitId) -> bool:
        """Return whether an allowed signer has signed a commit of the mirror.

        Raises UncheckedSignature where something keeps git from looking at it, whatever became of other commits.
        """
        why, said = self._fault(commit)
        if why is SignatureFault.UNCHECKED:
            raise UncheckedSignature(said)
        return why is None

    def _find(self, tip: CommitId, signers: str) -> _Found:
        why, said = self._fault(tip)
        try:
            commit = self._remembered()
            if commit is None:
                commit = self._without_memory(tip)
            elif why is None and self._may_follow(tip, commit):
                commit = tip
        except Missing as missing:
            raise self._branches.incomplete(missing) from missing
        if why is None and commit != tip:
            why = SignatureFault.OLDER
        elif why is SignatureFault.UNSIGNED and commit == tip:
            why = SignatureFault.DELISTED
        self._branches.local(["update-ref", self._ref, commit])
        return _Found(tip=tip, signers=signers, mirror=self._branches.renewals, commit=commit, why=why, said=said)

    def _fault(self, commit: CommitId) -> tuple[SignatureFault | None, str]:
        """Look at the signature of a commit; also return what keeps git from looking at it."""
        try:
            with self._verifying() as runner:
                return None if _is_signed(runner, commit) else SignatureFault.UNSIGNED, ""
        except (InvalidInput, Transient) as error:
            return SignatureFault.UNCHECKED, str(error)

    def _remembered(self) -> CommitId | None:
        """Return what was in force last, by this mirror, by this process, by that of the passes, or by one put aside.

        The latter may be far behind: this process comes first, where anybody still has its commit.
        """
        read = ["for-each-ref", "--format=%(objectname)", self._ref]
        noted = self._branches.local(read).decode().strip()
        if not noted:
            if self._found is not None and self._branches.commits.obtain(self._found.commit):
                return self._found.commit
            self._branches.commits.fetch_beside(f"+{self._ref}:{self._ref}")
            noted = self._branches.local(read).decode().strip()
        return CommitId(noted) if noted else None

    def _without_memory(self, tip: CommitId) -> CommitId:
        """Find what to begin with, never a commit that is before the last one that was decided on."""
        last = self._decided_on()
        with self._verifying() as runner:
            return self._first(runner, tip, last)

    def _first(self, runner: Runner, tip: CommitId, last: CommitId | None) -> CommitId:
        chain = self._branches.history(self._branches.source).first_parents(tip)
        for stored in islice(chain, _MOST_UNSIGNED):
            if stored.logged.id == last:
                break
            if _is_signed(runner, stored.logged.id):
                if last is None or self._may_follow(stored.logged.id, last):
                    return stored.logged.id
                break
        if last is not None and _is_signed(runner, last):
            return last
        since = f" after {last[:12]}, which was decided on last," if last else ""
        raise InvalidInput(
            f"source branch at {tip[:12]}: none of its last {_MOST_UNSIGNED} commits{since} is signed by an allowed"
            " signer, so that none is in force (sign the newest one, or mend OVERSPILL_ALLOWED_SIGNERS_FILE)"
        )

    def _decided_on(self) -> CommitId | None:
        """Return the commit that was decided on last; None if nobody has it."""
        named = next(decided_on(self._branches, self._committer, most=_MOST_FOREIGN), None)
        return named if named is not None and self._branches.commits.obtain(named) else None

    def _may_follow(self, new: CommitId, old: CommitId) -> bool:
        if new == old:
            return True
        if self._branches.history(self._branches.source).reaches(new, old):
            return True
        return self._logged(new).at > self._logged(old).at

    def _logged(self, commit: CommitId) -> LoggedCommit:
        (raw,) = self._branches.reader.read([commit])
        return parse(commit, raw).logged

    @contextmanager
    def _verifying(self) -> Iterator[Runner]:
        """Yield a runner by which git trusts the allowed signers alone."""
        with self._signers.trusted() as (settings, environment):
            runner = self._branches.runner
            yield replace(
                runner, environment={**runner.environment, **environment}, settings=(*runner.settings, *settings)
            )


def _is_signed(runner: Runner, commit: CommitId) -> bool:
    """Return whether an allowed signer has signed a commit.

    Raises InvalidInput where the program for that is missing, and Transient where git cannot run it now.
    """
    done = runner.run_silent(["verify-commit", commit], silence=runner.bounds.signature)
    unchecked = _UNCHECKED.search(done.stderr)
    if unchecked is None:
        return done.status == 0
    doing = f"checking the signature of {commit[:12]}"
    if absent := _ABSENT.fullmatch(unchecked[1]):
        raise InvalidInput(f"{doing}: {absent[1]} is not on the PATH (try installing OpenSSH, or GnuPG)")
    raise Transient(f"{doing}: {one_line(unchecked[1])}")
