"""A real Gitea with a rule of signed commits takes our pushes, and refuses those without a signature."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.adapters.git import Credentials, GitRepository
from reconciler.adapters.git.signing import SigningKey
from reconciler.errors import Transient
from reconciler.model.tree import Commit, Identity
from tests.e2e.gitea import Gitea, missing

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
COMMITTER = Identity(name="overspill", email="overspill@example.com")


@pytest.fixture
def gitea(tmp_path: Path) -> Iterator[Gitea]:
    if why := missing():
        pytest.skip(why)
    gitea = Gitea(tmp_path / "gitea")
    yield gitea
    gitea.stop()


@pytest.fixture
def openpgp(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Make an OpenPGP key of the account that pushes; yield its file and its public part.

    Gitea takes signatures of SSH keys only after a person has proved the key at its page.
    """
    with tempfile.TemporaryDirectory(prefix="ovs-") as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
        subprocess.run([*gpg, "--quick-gen-key", f"overspill <{COMMITTER.email}>", "ed25519", "sign"], check=True)
        secret = tmp_path / "secret.asc"
        secret.write_bytes(
            subprocess.run([*gpg, "--armor", "--export-secret-keys"], check=True, capture_output=True).stdout
        )
        public = subprocess.run([*gpg, "--armor", "--export"], check=True, capture_output=True, text=True).stdout
        yield secret, public
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)


@pytest.mark.skipif(shutil.which("gpg") is None, reason="no gpg")
def test_rule_of_signed_commits_is_met(gitea: Gitea, openpgp: tuple[Path, str], tmp_path: Path) -> None:
    key, public = openpgp
    gitea.call("overspill", "POST", "/user/gpg_keys", {"armored_public_key": public})
    url, login = f"{gitea.url}/acme/fleet.git", Credentials(username="overspill", password=gitea.passwords["overspill"])
    commits = [
        Commit(message=f"burst: {name}\n\nOverspill-Action: Place", author=COMMITTER, at=NOON, writes={name: b"x\n"})
        for name in ("a", "b", "c")
    ]
    signing = SigningKey(key=key)
    with GitRepository(
        url, cache=tmp_path / "signed", credentials=login, committer=COMMITTER, signing=signing
    ) as repository:
        repository.fetch()
        # Gitea looks for signatures among the commits after the old tip, so that the branch has to be there.
        begun = repository.write(None, commits[:1])
        repository.begin_push(begun[-1], old=None)()
        gitea.call(
            "ada",
            "POST",
            "/repos/acme/fleet/branch_protections",
            {"rule_name": "placements", "enable_push": True, "require_signed_commits": True},
        )
        with GitRepository(url, cache=tmp_path / "unsigned", credentials=login, committer=COMMITTER) as unsigned:
            assert unsigned.fetch().output == begun[-1]
            refused = unsigned.write(begun[-1], commits[1:2])
            # This Gitea tells users of an internal error there, and its log of the unsigned commit.
            with pytest.raises(Transient, match="OVERSPILL_SIGNING_KEY_FILE"):
                unsigned.begin_push(refused[-1], old=begun[-1])()
        made = repository.write(begun[-1], commits[1:])
        repository.begin_push(made[-1], old=begun[-1])()
        assert repository.fetch().output == made[-1]
    for commit in (*begun, *made):
        assert gitea.call("ada", "GET", f"/repos/acme/fleet/git/commits/{commit}")["commit"]["verification"]["verified"]
