"""Commits are signed where a key is given, and the source branch has to be where signers are."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.fastimport import with_trailers
from reconciler.adapters.git.signing import AllowedSigners, SigningKey, key_format, open_signer
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.tree import BranchCommit, Commit, Identity, Projection, SignatureFault, SourceTip
from tests.builders.remote import Remote

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
ANN = Identity(name="Ann", email="ann@example.com")
PHRASE = "correct horse battery"


def _ssh_key(directory: Path, name: str = "key", phrase: str = "") -> Path:
    key = directory / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-C", "bot", "-f", str(key)], check=True)
    return key


def _allowed(key: Path) -> Path:
    path = key.with_suffix(".allowed")
    path.write_text(f"ann@example.com {key.with_suffix('.pub').read_text()}")
    return path


@pytest.fixture
def openpgp(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Make an OpenPGP key with a passphrase; yield the files of its secret and its public part."""
    home = Path(os.environ.get("TMPDIR", "/tmp")) / f"ovs-gpg-{os.getpid()}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", PHRASE]
    try:
        subprocess.run([*gpg, "--quick-gen-key", "Bot <bot@example.com>", "ed25519", "sign"], check=True)
        secret, public = tmp_path / "secret.asc", tmp_path / "public.asc"
        secret.write_bytes(
            subprocess.run([*gpg, "--armor", "--export-secret-keys"], check=True, capture_output=True).stdout
        )
        public.write_bytes(subprocess.run([*gpg, "--armor", "--export"], check=True, capture_output=True).stdout)
        yield secret, public
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)
        shutil.rmtree(home, ignore_errors=True)


def _commit(path: str) -> Commit:
    return Commit(message=f"burst: {path}\n\nOverspill-Action: Place", author=ANN, at=NOON, writes={path: b"x\n"})


def _trusted(repository: GitRepository, commit: CommitId, signers: AllowedSigners) -> bool:
    runner = repository._branches.runner
    with signers.trusted() as (settings, environment):
        options = [part for key, value in settings for part in ("-c", f"{key}={value}")]
        git = ["git", "--git-dir", str(runner.git_dir), *options, "verify-commit", commit]
        return subprocess.run(git, env={**os.environ, **environment}, capture_output=True, check=False).returncode == 0


def _chain(repository: GitRepository, tip: CommitId) -> list[CommitId]:
    return [CommitId(line) for line in repository._branches.local(["rev-list", tip]).decode().split()]


def test_each_commit_of_a_batch_is_signed_and_keeps_its_place(remote: Remote, tmp_path: Path) -> None:
    key = _ssh_key(tmp_path)
    key.chmod(0o644)  # as a mounted Secret with a group is
    remote.commit("main", {"a": "1"})
    with GitRepository(str(remote.path), cache=tmp_path / "cache", signing=SigningKey(key=key)) as repository:
        repository.fetch()
        made = repository.write(None, [_commit("a"), _commit("b"), _commit("c")])
        signers = AllowedSigners(ssh=_allowed(key))
        assert _chain(repository, made[-1]) == made[::-1]
        assert all(_trusted(repository, commit, signers) for commit in made)
        repository.begin_push(made[-1], old=None)()
        assert remote.tip("placements") == made[-1]
        assert [entry.path for entry in repository.entries(made[-1])] == ["a", "b", "c"]
        assert repository.last_written(made[-1]) == made[-1]
        assert not _trusted(repository, made[-1], AllowedSigners(ssh=_allowed(_ssh_key(tmp_path, "other"))))


def test_branches_of_clusters_are_signed_to_their_roots(remote: Remote, tmp_path: Path) -> None:
    key = _ssh_key(tmp_path)
    remote.commit("main", {"a": "1"})
    with GitRepository(str(remote.path), cache=tmp_path / "cache", signing=SigningKey(key=key)) as repository:
        repository.fetch()
        (made,) = repository.write(None, [_commit("clusters/worker-1/a")])
        (directories,) = repository.directories([made])
        tree = directories[ClusterName("worker-1")]
        snapshots = tuple(
            BranchCommit(message=f"{text}\n\nOverspill-Action: Follow", author=ANN, at=NOON, directory=directory)
            for text, directory in (("one", tree), ("two", None), ("three", tree))
        )
        projections = [Projection(cluster=ClusterName("worker-1"), base=None, snapshots=snapshots)]
        (advance,) = repository.project(projections)
        chain = _chain(repository, advance.new)
        assert len(chain) == 3
        signers = AllowedSigners(ssh=_allowed(key))
        assert all(_trusted(repository, commit, signers) for commit in chain)
        repository.begin_push(made, old=None, branches=[advance])()


def test_public_keys_that_name_nobody_are_no_allowed_signers(remote: Remote, tmp_path: Path) -> None:
    key = _ssh_key(tmp_path)
    remote.commit("main", {"a": "1"})
    public = key.with_suffix(".pub")
    with GitRepository(str(remote.path), cache=tmp_path / "cache", signing=SigningKey(key=key)) as repository:
        repository.fetch()
        (made,) = repository.write(None, [_commit("a")])
        with pytest.raises(InvalidInput, match=r"without the names of who signs by them \(begin each line"):
            _trusted(repository, made, AllowedSigners(ssh=public))
        both = tmp_path / "both"
        both.write_text(f"{public.read_text()}{_allowed(key).read_text()}")
        assert _trusted(repository, made, AllowedSigners(ssh=both))


@pytest.mark.skipif(shutil.which("gpg") is None, reason="no gpg")
def test_openpgp_key_with_a_passphrase_signs(remote: Remote, tmp_path: Path, openpgp: tuple[Path, Path]) -> None:
    secret, public = openpgp
    phrase = tmp_path / "phrase"
    phrase.write_text(f"{PHRASE}\n")
    remote.commit("main", {"a": "1"})
    signing = SigningKey(key=secret, passphrase=phrase)
    with GitRepository(str(remote.path), cache=tmp_path / "cache", signing=signing) as repository:
        repository.fetch()
        made = repository.write(None, [_commit("a"), _commit("b")])
        assert all(_trusted(repository, commit, AllowedSigners(openpgp=public)) for commit in made)
        assert not _trusted(repository, made[0], AllowedSigners())
        phrase.write_text("wrong")
        with pytest.raises(InvalidInput, match="OVERSPILL_SIGNING_PASSPHRASE_FILE"):
            repository.write(None, [_commit("c")])


def test_key_is_read_again_and_its_passphrase_is_in_no_argument_list(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, phrase = _ssh_key(tmp_path, phrase=PHRASE), tmp_path / "phrase"
    phrase.write_text(PHRASE)
    program = tmp_path / "bin" / "ssh-keygen"
    program.parent.mkdir()
    real = shutil.which("ssh-keygen")
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/arguments\nexec {real} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    remote.commit("main", {"a": "1"})
    signing = SigningKey(key=key, passphrase=phrase)
    with GitRepository(str(remote.path), cache=tmp_path / "cache", signing=signing) as repository:
        repository.fetch()
        (first,) = repository.write(None, [_commit("a")])
        assert _trusted(repository, first, AllowedSigners(ssh=_allowed(key)))
        other = _ssh_key(tmp_path, "other")
        shutil.copy(other, key)
        (second,) = repository.write(None, [_commit("b")])
        assert _trusted(repository, second, AllowedSigners(ssh=_allowed(other)))
    arguments = (tmp_path / "arguments").read_text()
    assert "-Y sign" in arguments
    assert PHRASE not in arguments


@pytest.mark.parametrize(
    "content", [b"", b"not a key", b"ssh-ed25519 AAAA bot", b"-----BEGIN PGP PUBLIC KEY BLOCK-----"]
)
def test_key_that_cannot_sign_is_told_with_a_way_out(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"\(try"):
        key_format(content)
    key = tmp_path / "key"
    key.write_bytes(content)
    with pytest.raises(InvalidInput, match="signing with"), open_signer(SigningKey(key=key)):
        pass
    with (
        pytest.raises(InvalidInput, match="OVERSPILL_SIGNING_KEY_FILE"),
        open_signer(SigningKey(key=tmp_path / "absent")),
    ):
        pass


def test_host_that_requires_signatures_takes_ours_and_refuses_others(remote: Remote, tmp_path: Path) -> None:
    key = _ssh_key(tmp_path)
    remote.commit("main", {"a": "1"})
    hook = Path(remote.path) / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\nwhile read old new ref; do for commit in $(git rev-list $new --not --all); do\n"
        f"git -c gpg.ssh.allowedSignersFile={_allowed(key)} verify-commit $commit 2>/dev/null ||"
        ' { echo "GitLab: Commit must be signed with a GPG key" >&2; exit 1; }\ndone; done\n'
    )
    hook.chmod(0o755)
    with GitRepository(str(remote.path), cache=tmp_path / "cache") as repository:
        repository.fetch()
        (made,) = repository.write(None, [_commit("a")])
        with pytest.raises(InvalidInput, match="OVERSPILL_SIGNING_KEY_FILE"):
            repository.begin_push(made, old=None)()
    with GitRepository(str(remote.path), cache=tmp_path / "cache", signing=SigningKey(key=key)) as repository:
        repository.fetch()
        made = repository.write(None, [_commit("a"), _commit("b")])[-1]
        repository.begin_push(made, old=None)()
        assert remote.tip("placements") == made


def _sign_tip(remote: Remote, key: Path, path: str) -> CommitId:
    """Commit to the source branch with a signature."""
    with GitRepository(
        str(remote.path), cache=key.parent / f"signer-{path}", signing=SigningKey(key=key)
    ) as repository:
        source = repository.fetch().source
        (made,) = repository.write(source, [_commit(path)])
        repository.move_head("signed", old=None, new=made)
    remote.git("update-ref", "refs/heads/main", made)
    remote.git("update-ref", "-d", "refs/heads/signed")
    return made


def test_unsigned_push_changes_nothing_until_it_is_signed(remote: Remote, tmp_path: Path) -> None:
    key, stranger = _ssh_key(tmp_path), _ssh_key(tmp_path, "stranger")
    remote.commit("main", {"a": "1"})
    signers = AllowedSigners(ssh=_allowed(key))
    with GitRepository(str(remote.path), cache=tmp_path / "cache", allowed_signers=signers) as repository:
        with pytest.raises(InvalidInput, match="OVERSPILL_ALLOWED_SIGNERS_FILE"):
            repository.fetch()
        first = _sign_tip(remote, key, "first")
        assert (repository.fetch().source, repository.tips().held_back) == (first, None)
        unsigned = remote.commit("main", {"b": "1"})
        assert (repository.fetch().source, repository.tips().held_back) == (
            first,
            SourceTip(commit=unsigned, why=SignatureFault.UNSIGNED),
        )
        foreign = _sign_tip(remote, stranger, "foreign")
        assert (repository.fetch().source, repository.tips().held_back) == (
            first,
            SourceTip(commit=foreign, why=SignatureFault.UNSIGNED),
        )
        assert [entry.path for entry in repository.entries(first)] == ["a", "first"]
        assert repository.log(first)[0].id == first
        signers.ssh.write_text(signers.ssh.read_text() + _allowed(stranger).read_text())
        assert (repository.tips().source, repository.tips().held_back) == (foreign, None)
    again = AllowedSigners(ssh=_allowed(key))
    with GitRepository(str(remote.path), cache=tmp_path / "empty", allowed_signers=again) as repository:
        assert repository.fetch().source == first, "an empty disk finds the commit in force again"


@pytest.mark.parametrize("form", ["PEM", "PKCS8", "RFC4716"])
@pytest.mark.parametrize("phrase", ["", PHRASE])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_a_key_of_any_form_and_line_ends_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, phrase: str, ends: bytes
) -> None:
    key, secret = tmp_path / "key", tmp_path / "phrase"
    made = ["ssh-keygen", "-q", "-t", "ecdsa", "-m", form, "-N", phrase, "-C", "bot", "-f", str(key)]
    subprocess.run(made, check=True)
    key.write_bytes(key.read_bytes().replace(b"\n", ends))
    secret.write_text(phrase)
    here = tmp_path / "a $(false) 'directory'"
    here.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here))
    with open_signer(SigningKey(key=key, passphrase=secret if phrase else None)) as signer:
        assert signer.sign(b"payload").startswith("-----BEGIN SSH SIGNATURE-----")


PKCS8 = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIEEUm3NDv67fFOVXY3RjYOEXO+5d9c3F1ZdW9uk1vIJB
-----END PRIVATE KEY-----
"""
"""An ed25519 key as `openssl genpkey` writes it."""
OLD_SSH_KEYGEN = '#!/bin/sh\ncase $* in *-y*) echo "Load key $5: invalid format" >&2; exit 255;; esac\nexit 1\n'


def test_key_in_pkcs8_form_that_an_old_ssh_keygen_does_not_read_has_a_way_out(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass without changes tells it as well, and not the first one that has something to commit."""
    key, whole, program = tmp_path / "key", _ssh_key(tmp_path, "whole"), tmp_path / "bin" / "ssh-keygen"
    key.write_text(PKCS8)
    program.parent.mkdir()
    program.write_text(OLD_SSH_KEYGEN)
    program.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(program.parent), prepend=":")
        with GitRepository(str(remote.path), cache=tmp_path / "cache", signing=SigningKey(key=key)) as repository:
            for rehearse in (repository.refuse_unsigned, repository.rehearse_signature, repository.refuse_unsigned):
                with pytest.raises(InvalidInput, match="invalid format") as raised:
                    rehearse()
                assert "`ssh-keygen -p -f KEY`" in str(raised.value)
            shutil.copy(whole, key)
            patched.undo()
            repository.refuse_unsigned()
            patched.setenv("PATH", "")
            repository.refuse_unsigned()


def test_what_ssh_keygen_says_of_a_locked_key_is_one_line(tmp_path: Path) -> None:
    key = _ssh_key(tmp_path, phrase=PHRASE)
    with pytest.raises(InvalidInput) as raised, open_signer(SigningKey(key=key)) as signer:
        signer.sign(b"payload")
    assert "passphrase" in str(raised.value)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("message", "lines"),
    [("s\n\nOverspill-Action: Place\n", "s\n\nOverspill-Action: Place\nX: y\n"), ("s", "s\n\nX: y\n")],
)
def test_lines_of_an_organisation_join_the_trailers(message: str, lines: str) -> None:
    assert with_trailers(message, ("X: y",)) == lines
    assert with_trailers(message, ()) == message
