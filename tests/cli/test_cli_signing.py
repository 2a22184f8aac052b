"""Signed commits and a signed source branch, as a person meets them at the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Make an SSH key, and the list that allows it beside it."""
    key = tmp_path / "signing-key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bot", "-f", str(key)], check=True)
    (tmp_path / "allowed").write_text(f"bot {(tmp_path / 'signing-key.pub').read_text()}")
    return key


def _unsigned(remote: Remote, branch: str, allowed: Path) -> list[str]:
    """List the subjects of commits without a trusted signature."""
    check = ["git", "-C", str(remote.path), "-c", f"gpg.ssh.allowedSignersFile={allowed}", "verify-commit"]
    commits = [line.split(" ", 1) for line in remote.git("log", "--format=%H %s", branch).splitlines()]
    return [
        subject
        for commit, subject in commits
        if subprocess.run([*check, commit], check=False, capture_output=True).returncode
    ]


def test_commits_of_passes_and_of_people_are_all_signed(
    overspill: Terminal, fleet: Remote, see: See, key: Path
) -> None:
    overspill.env["OVERSPILL_SIGNING_KEY_FILE"] = str(key)
    overspill.env["OVERSPILL_COMMIT_TRAILERS"] = "Signed-off-by: Bot <bot@example.com>"
    see()
    placed = [row["change"]["placement"]["name"] for row in overspill.answer("once")["commits"] if row["change"]]
    overspill.done("revert", placed[0], "--author", ANN)
    assert int(fleet.git("rev-list", "--count", "placements")) > 2
    assert _unsigned(fleet, "placements", key.parent / "allowed") == []
    bodies = fleet.git("log", "--format=%(trailers:key=Signed-off-by,valueonly)", "placements").split("\n")
    assert {line for line in bodies if line} == {"Bot <bot@example.com>"}
    assert "Overspill-Action" in fleet.git("log", "-1", "--format=%(trailers:only)", "placements")


def test_key_that_cannot_sign_pushes_nothing_and_is_told(overspill: Terminal, fleet: Remote, key: Path) -> None:
    overspill.env["OVERSPILL_SIGNING_KEY_FILE"] = str(key.with_suffix(".pub"))
    result = overspill("once")
    assert result.exit_code == 1
    assert "it is a public key" in " ".join(result.stderr.split())
    assert "placements" not in fleet.git("branch", "--list")


@pytest.mark.parametrize("command", ["once", "sweep"])
def test_key_that_is_not_there_is_told_with_nothing_to_commit(
    overspill: Terminal, fleet: Remote, see: See, key: Path, command: str
) -> None:
    see()
    overspill.done("once")
    see(missing=0)
    overspill.done("once")
    before = fleet.tip("placements")
    overspill.env["OVERSPILL_SIGNING_KEY_FILE"] = str(key.with_name("absent"))
    result = overspill(command)
    assert fleet.tip("placements") == before
    assert result.exit_code == 1, result.output
    assert "absent: No such file or directory (try a path in OVERSPILL_SIGNING_KEY_FILE" in result.stderr
    assert overspill("status").exit_code == 0


@pytest.mark.parametrize(
    ("fault", "said"),
    [("public", "it is a public key"), ("absent", "No such file"), ("locked", "passphrase"), ("none", "signs")],
)
def test_doctor_names_a_key_that_cannot_sign_apart_from_the_push(
    overspill: Terminal, fleet: Remote, key: Path, fault: str, said: str
) -> None:
    """No dry run of a push mends a key, so that none is named."""
    if fault == "locked":
        subprocess.run(["ssh-keygen", "-q", "-p", "-N", "s3cret-w0rd", "-f", str(key)], check=True)
    file = {"public": key.with_suffix(".pub"), "absent": key.with_name("absent")}.get(fault, key)
    overspill.env["OVERSPILL_SIGNING_KEY_FILE"] = str(file)
    groups = json.loads(overspill("doctor", "-o", "json").stdout)
    rows = {row["subject"]: row for group in groups for row in group["results"]}
    row = rows["signing key"]
    assert (row["readiness"], row["remedy"]) == ("ok" if fault == "none" else "missing", "")
    assert said in " ".join(row["seen"].split())
    assert rows["push to placements"]["readiness"] == "ok"


def test_push_that_nobody_in_the_list_has_signed_changes_nothing(overspill: Terminal, fleet: Remote, key: Path) -> None:
    allowed = key.parent / "allowed"
    overspill.env["OVERSPILL_ALLOWED_SIGNERS_FILE"] = str(allowed)
    said = " ".join(overspill("plan").stderr.split())
    assert "is signed by an allowed signer, so that none is in force" in said
    tree = fleet.git("rev-parse", "main^{tree}")
    payload = fleet.git(*_signing(key), "commit-tree", "-p", "main", "-m", "signed", "-S", tree)
    fleet.git("update-ref", "refs/heads/main", payload)
    first = overspill("plan")
    assert first.exit_code == 0
    assert "no allowed signer" not in first.stderr
    unsigned = fleet.commit("main", {"fleet.yaml": None})
    second = overspill("plan")
    assert f"no allowed signer has signed {unsigned[:12]}: {payload[:12]} stays in force" in " ".join(
        (second.stdout + second.stderr).split()
    )
    assert "no allowed signer" in " ".join((overspill("status").stdout + overspill("status").stderr).split())


def _signing(key: Path) -> tuple[str, ...]:
    return (
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.com",
        "-c",
        "gpg.format=ssh",
        "-c",
        f"user.signingKey={key}",
    )


@pytest.mark.parametrize(
    ("first", "former", "counts"),
    [
        ("", "", True),
        ("bot@example.com", "", False),
        ("bot@example.com", "old@example.com bot@example.com", True),
    ],
)
def test_commits_with_a_former_address_count(
    overspill: Terminal, fleet: Remote, see: See, *, first: str, former: str, counts: bool
) -> None:
    see()
    if first:
        overspill.env["OVERSPILL_COMMITTER_EMAIL"] = first
    overspill.done("once")
    before = overspill.answer("history")["placements"]
    assert before
    overspill.env["OVERSPILL_COMMITTER_EMAIL"] = "overspill@acme.example.com"
    overspill.env["OVERSPILL_COMMITTER_FORMER_EMAILS"] = former
    assert overspill.answer("history")["placements"] == (before if counts else [])
    warned = overspill("history").stderr
    assert ("OVERSPILL_COMMITTER_FORMER_EMAILS=bot@example.com" in warned) is not counts
    groups = json.loads(overspill("doctor", "-o", "json").stdout)
    told = [row for group in groups for row in group["results"] if row["subject"].startswith("committers of ")]
    assert len(told) == (0 if counts else 1)
    for row in told:
        assert f"of {first}, since our address is overspill@acme.example.com" in row["seen"]
        assert f"OVERSPILL_COMMITTER_FORMER_EMAILS={first}" in row["remedy"]
