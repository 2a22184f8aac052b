"""What git, ssh and hosts say reaches the person, with what to do; and whether waiting helps."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from reconciler.adapters.git import Credentials, GitRepository
from reconciler.adapters.git.remote import check_address
from reconciler.adapters.git.remote_errors import _MEANINGS, _RULES, failure, reason, rejection
from reconciler.errors import HostKeyChanged, InvalidInput, OverspillError, Transient
from reconciler.model.events.notification import DeliveryMarks

SSH = check_address("git@git.example.com:acme/fleet.git", None)
NO_READ = (
    "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n"
    "and the repository exists.\n"
)
CHANGED = f"""\
{"@" * 59}
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
{"@" * 59}
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
The fingerprint for the ED25519 key sent by the remote host is
SHA256:uNiVztksCsDhcc0u9e8BrQrVoHEQ5Vb1kVqb7JZ0Fqk.
Please contact your system administrator.
Add correct host key in /home/app/.ssh/known_hosts to get rid of this message.
Offending ECDSA key in /home/app/.ssh/known_hosts:1
Host key for git.example.com has changed and you have requested strict checking.
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("said", "shown", "remedy"),
    [
        ('Load key "/k": error in libcrypto\nh: Permission denied (publickey).', "libcrypto", "ssh-keygen"),
        ('Load key "/k": invalid format', "invalid format", "last line break"),
        ("Permissions 0644 for '/k' are too open.\nLoad key \"/k\": bad permissions", "too open", "0400"),
        (
            "Unable to negotiate with h port 22: no matching host key type found. Their offer: ssh-rsa",
            "ssh-rsa",
            "ed25",
        ),
        ("Unable to negotiate: no matching key exchange method found.", "key exchange", "ed25519"),
        ("Received disconnect from h: 2: Too many authentication failures", "Too many", "OVERSPILL_SSH_KEY"),
        ("No user exists for uid 10001", "uid 10001", "/etc/passwd"),
        ("error: cannot run ssh: No such file or directory\nfatal: unable to fork", "cannot run ssh", "OpenSSH"),
        ("ERROR: The 'acme' organization has enabled or enforced SAML SSO.", "SAML SSO", "single sign-on"),
        ("remote: Your account is suspended. Please contact support.", "suspended", "account"),
        ("remote: This repository was archived so it is read-only.", "archived", "archive"),
        ("git@h: Permission denied (publickey).", "publickey", "deploy key"),
        ("No ED25519 host key is known for h and you have requested strict checking.", "is known", "fingerprint"),
        ("fatal: unable to access 'https://h/': SSL certificate problem: self-signed certificate", "self", "GIT_SSL"),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 407", "407", "HTTPS_PROXY"),
        ("error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413", "413", "client_max_body_size"),
        (
            "remote: GitLab: Your push to this repository has been rejected because storage limit exceeded",
            "storage",
            "q",
        ),
        (
            (
                "fatal: unable to update url base from redirection:\n  asked for: https://h/f/info/refs\n"
                "   redirect: https://h/_signin?realm=x"
            ),
            "https://h/_signin",
            "OVERSPILL_GIT_PASSWORD_FILE",
        ),
        ("ERROR: The key you are authenticating with has been marked as read only.", "read only", "deploy key"),
        ("remote: ERROR: Your SSH key has expired.", "expired", "OVERSPILL_SSH_KEY"),
        ("remote: Access blocked: repository has been disabled", "disabled", "host"),
        ("no such identity: /secrets/key: No such file or directory\nh: Permission denied (publickey).", "key", "read"),
        ("ERROR: You're using an RSA key with SHA-1, which is no longer allowed.", "SHA-1", "ed25519"),
        ("ERROR: We're doing an SSH key audit.\nReason: unverified due to lack of use", "audit", "approve the key"),
        ("remote: Your account is currently suspended.", "suspended", "account"),
        ("remote: 2FA required", "2FA", "account"),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 402", "402", "account"),
        ("remote: You are not allowed to download code from this project.", "download", "access to the repository"),
        ("remote: This deploy key does not have write access to this project.", "write", "let the deploy key write"),
        ("remote: TF400813: The user 'x' is not authorized to access this resource.", "TF400813", "access to the repo"),
        (
            "remote: You must use a personal access token with 'read_repository' scope for Git over HTTP.",
            "personal",
            "OVERSPILL_GIT_PASSWORD_FILE",
        ),
        (
            ("fatal: https://h/info/refs not valid: could not determine hash algorithm; is this a git repository?"),
            "not valid",
            "login page",
        ),
        ("fatal: unable to access 'https://h/': Maximum (20) redirects followed", "Maximum", "has moved to"),
        ("fatal: unable to access 'https://h/': Protocol \"ftp\" not supported", "ftp", "use https, ssh or file"),
        (
            "fatal: unable to access 'https://h/': error:0A00010B:SSL routines::wrong version number",
            "wrong version",
            "port of the URL",
        ),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 418", "418", "proxy in between"),
        ("Certificate invalid: expired\nHost key verification failed.", "expired", "ssh certificate renewed"),
        ("Can't open user config file /x: No such file or directory", "config file", "~/.ssh/config"),
        ("/home/app/.ssh/config: line 3: Bad configuration option: foo", "line 3", "~/.ssh/config"),
    ],
)
def test_cause_that_does_not_pass_is_told_with_its_remedy(said: str, shown: str, remedy: str) -> None:
    error = failure("fetching", f"{said}\n{NO_READ}", SSH)
    assert type(error) is InvalidInput
    cause, _, way_out = str(error).partition(" (try: ")
    assert shown in cause
    assert remedy in way_out
    assert "correct access rights" not in cause


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [
        ("https://git.example.com", "OVERSPILL_GIT_PASSWORD_FILE"),
        ("https://***@git.example.com:443", "OVERSPILL_GIT_PASSWORD_FILE"),
        ("https://git.example.com/acme/fleet", "OVERSPILL_GIT_PASSWORD_FILE"),
        ("https://git.example.com:8443", "has moved to"),
        ("https://***@other.example.com", "has moved to"),
        ("https://git.example.com/mallory/fleet.git", "has moved to"),
        ("http://git.example.com", "has moved to"),
    ],
)
def test_login_for_where_a_redirect_leads_is_not_asked_for(asked: str, remedy: str) -> None:
    remote = check_address("https://git.example.com/acme/fleet.git", Credentials(password="swordfish-42"))
    said = f"fatal: could not read Username for '{asked}': terminal prompts disabled"
    error = failure("fetching", said, remote)
    assert type(error) is InvalidInput
    assert asked in str(error)
    assert remedy in str(error).partition(" (try: ")[2]


@pytest.mark.parametrize(
    "said",
    [
        "ssh: connect to host h port 22: Connection refused",
        "ssh: connect to host h port 22: Connection timed out",
        "ssh: Could not resolve hostname h: Temporary failure in name resolution",
        "fatal: unable to access 'https://h/': Failed to connect to h port 443: No route to host",
        "kex_exchange_identification: Connection closed by remote host",
        "remote: GitLab is in maintenance mode.",
        "remote: The repository is temporarily unavailable.",
        "fatal: unable to access 'https://h/': The requested URL returned error: 503",
        "fatal: unable to access 'https://h/': The requested URL returned error: 408",
        "remote: GitLab: The repository has been temporarily marked as read-only for maintenance",
        "remote: GitLab: Internal API unreachable",
        "remote: GitLab: Failed to authorize your Git request: internal API unreachable",
        "remote: policy server timed out, try again",
        "remote: The backend is overloaded.",
        "words that no table knows",
    ],
)
def test_cause_that_passes_is_shown_and_waited_for(said: str) -> None:
    error = failure("fetching", f"{said}\n{NO_READ}", SSH)
    assert isinstance(error, Transient)
    assert error.pause is None
    assert said.removeprefix("remote: ") in str(error)


@pytest.mark.parametrize(
    "said",
    [
        "fatal: unable to access 'https://h/': The requested URL returned error: 429",
        (
            "remote: You have exceeded a secondary rate limit. Please wait a few minutes before you try again.\n"
            "fatal: unable to access 'https://h/': The requested URL returned error: 403"
        ),
        "remote: Retry later",
    ],
)
def test_rate_limit_is_waited_out_with_longer_pauses(said: str) -> None:
    error = failure("fetching", said, SSH)
    assert isinstance(error, Transient)
    assert error.pause is not None
    assert error.pause.total_seconds() >= 30


def _names() -> list[str]:
    """Return names that a row of the tables would take for its words: each run of words in its pattern, as a name."""
    names = set()
    for row in (*_MEANINGS, *_RULES):
        written = re.sub(r"\.\??|-\?|\\.", "-", row.pattern.pattern)
        for run in re.findall(r"[A-Za-z0-9]+(?:[ -][A-Za-z0-9]+)*", written):
            name = re.sub(r"[ -]+", "-", run).lower()
            names |= {name} if row.pattern.search(name) else set()
    return sorted(names)


def test_names_that_hosts_and_branches_have_are_among_those_tried() -> None:
    assert {"quota", "maintenance", "rate-limit", "certificate", "signing", "dmca"} <= set(_names())
    assert len(_names()) > 12


@pytest.mark.parametrize("name", _names())
def test_name_of_a_host_a_repository_a_user_or_a_branch_means_nothing(name: str) -> None:
    for url in (f"https://{name}.example.com/acme/fleet.git", f"https://{name}/{name}/{name}.git"):
        host = url.split("/")[2]
        remote = check_address(url, None)
        for said in (
            f"fatal: unable to access '{url}/': Could not resolve host: {host}",
            f"fatal: unable to access '{url}/': Failed to connect to {host} port 443 after 3 ms: Connection refused",
        ):
            _passes(failure("fetching", said, remote))
    for url in (f"git@{name}.example.com:{name}/fleet.git", f"{name}@{name}:{name}.git", f"ssh://{name}@{name}:22/a"):
        remote = check_address(url, None)
        for said in (
            f"ssh: connect to host {name} port 22: Connection refused\n{NO_READ}",
            f"ssh: connect to host {name}.internal port 22: Connection refused\n{name}/fleet.git: gone",
            f"ssh: Could not resolve hostname {name}: Name or service not known",
            f"Connection closed by {name}.example.com port 22",
            f'debug: "/secrets/{name}" was read for the `{name}` organization',
        ):
            _passes(failure("fetching", said, remote))
    for branch in (f"refs/heads/{name}", f"refs/overspill/notified/{name}/told"):
        remark = f"remote: error processing {branch}, of {branch.removeprefix('refs/heads/')} at '{name}'\n"
        _passes(rejection("pushing", "[remote rejected] (Error)", remark, SSH, branch=branch))


def _passes(error: OverspillError) -> None:
    assert isinstance(error, Transient), error
    assert error.pause is None


def test_words_beside_such_a_name_keep_their_meaning() -> None:
    remote = check_address("https://git.example.com/acme/quota.git", None)
    said = "remote: Permission to acme/quota.git denied to maintenance-bot."
    assert "give this login access" in str(failure("fetching", said, remote))
    git = check_address("git@git:git/git.git", None)
    assert "URL" in str(failure("fetching", f"fatal: 'git' does not appear to be a git repository\n{NO_READ}", git))
    proxied = f"fatal: unable to access '{remote.url}/': Could not resolve proxy: quota.example.com"
    assert "HTTPS_PROXY" in str(failure("fetching", proxied, remote))


@pytest.mark.parametrize(
    "said",
    [
        "banner exchange: Connection to 192.0.2.1 port 22: invalid format",
        "ssh_dispatch_run_fatal: Connection to 192.0.2.1 port 22: invalid format",
        "fatal: protocol error: bad line length character: <htm",
    ],
)
def test_what_may_pass_or_not_is_waited_for_and_has_a_remedy_for_where_it_stays(said: str) -> None:
    error = failure("fetching", f"{said}\n{NO_READ}", SSH)
    _passes(error)
    assert re.search(r"\(if it stays: see .*\b(?:proxy|login page)", str(error))
    assert "key file" not in str(error)


@pytest.mark.parametrize(
    "said",
    [
        CHANGED,
        "@  WARNING: POSSIBLE DNS SPOOFING DETECTED!  @\nHost key verification failed.",
        "@  WARNING: REVOKED HOST KEY DETECTED!  @\nHost key verification failed.",
        "@  WARNING: HOST CERTIFICATE REVOKED!  @\nHost key verification failed.",
        "key_verify failed for server_host_key",
        "ssh_dispatch_run_fatal: Connection to 192.0.2.1 port 22: incorrect signature",
        "fatal: unable to access 'https://h/': SSL: public key does not match pinned public key",
    ],
)
def test_changed_host_key_is_an_alarm_that_advises_to_ask_the_host(said: str) -> None:
    error = failure("fetching", f"{said}\n{NO_READ}", SSH)
    assert isinstance(error, HostKeyChanged)
    assert "ALARM" in str(error)
    assert "by another way than this connection" in str(error)
    assert "Add correct host key" not in str(error)
    assert "@@" not in str(error)
    if said == CHANGED:
        assert "SHA256:uNiVztksCsDhcc0u9e8BrQrVoHEQ5Vb1kVqb7JZ0Fqk" in str(error)


@pytest.mark.parametrize(
    ("remark", "remedy"),
    [
        ("GitLab: Commit must be signed with a GPG key", "OVERSPILL_SIGNING_KEY_FILE"),
        (
            "error: GH013: Repository rule violations found.\nremote: - Commits must have verified signatures.",
            "SIGNING",
        ),
        ("GitLab: Commit message does not follow the pattern '^[A-Z]+-[0-9]+: .*'", "OVERSPILL_COMMIT_TRAILERS"),
        ("GitLab: Committer's email 'a@b' does not follow the pattern '@acme'", "OVERSPILL_COMMITTER_EMAIL"),
        ("error: GH001: Large files detected.", "file sizes"),
        ("error: GH013\nremote: - GITHUB PUSH PROTECTION\nremote: - Push cannot contain secrets", "revoke it"),
        ("GitLab: The file is locked in Git LFS by Ann", "LFS"),
        ("GitLab: File name x was prohibited by the pattern '\\.yaml$'.", "rule of file names"),
        (
            "error: GH013: Repository rule violations found.\nremote: - Changes must be made through a pull request.",
            "except",
        ),
        ("Branch x can only be modified through pull requests. Check your branch permissions", "except"),
        ("GitLab: This deploy key does not have write access to this project.", "let the deploy key write"),
        ("error: refusing to update checked out branch: refs/heads/placements", "check another branch out"),
        ("GitLab: the push is greater than the 5120 MB limit", "file sizes"),
        ("hint: sign your commits\nremote: Jira issue is missing in the commit message", "OVERSPILL_COMMIT_TRAILERS"),
    ],
)
def test_rule_on_content_is_not_answered_with_the_right_to_push(remark: str, remedy: str) -> None:
    error = rejection(
        "pushing", "[remote rejected] (pre-receive hook declined)", f"remote: {remark}\n", SSH, branch="placements"
    )
    assert type(error) is InvalidInput
    assert remark.splitlines()[0] in str(error)
    assert remedy in str(error)
    assert "allow this login to push" not in str(error)


@pytest.mark.parametrize(
    ("summary", "remark"),
    [
        ("TF401027: You need the Git 'GenericContribute' permission to perform this action.", ""),
        (
            "push declined due to repository rule violations",
            "error: GH013: x\nremote: - Cannot update this protected ref.",
        ),
        ("protected branch hook declined", "error: You're not authorized to push to this branch."),
        ("pre-receive hook declined", "Gitea: User permission denied for writing."),
        ("pre-receive hook declined", "You don't have write access to this project"),
        ("prohibited by Gerrit: not permitted: update", ""),
    ],
)
def test_login_that_may_not_push_is_told_as_that(summary: str, remark: str) -> None:
    error = rejection("pushing", f"[remote rejected] ({summary})", f"remote: {remark}\n", SSH, branch="placements")
    assert type(error) is InvalidInput
    assert "allow this login to push" in str(error)


def test_summary_alone_names_the_rule() -> None:
    summary = "[remote rejected] (refusing to allow a GitHub App to create or update workflow `x` without `workflows`)"
    error = rejection("pushing", summary, "", SSH, branch="placements")
    assert type(error) is InvalidInput
    assert "let this login write workflows" in str(error)


def test_hook_that_has_judged_nothing_is_waited_for() -> None:
    for remark in ("GitLab: Internal API unreachable", "The repository is temporarily read-only", "server timed out"):
        summary = "[remote rejected] (pre-receive hook declined)"
        _passes(rejection("pushing", summary, f"remote: {remark}\n", SSH, branch="placements"))


def test_internal_error_by_which_gitea_refuses_a_commit_without_a_signature_names_the_key() -> None:
    said = "remote: error:\nremote: error: Internal Server Error (no message for end users)\n"
    error = rejection("pushing", "[remote rejected] (pre-receive hook declined)", said, SSH, branch="placements")
    assert isinstance(error, Transient)
    assert "if it stays: " in str(error)
    assert "OVERSPILL_SIGNING_KEY_FILE" in str(error)


@pytest.mark.parametrize("port", ["", "2222"])
def test_key_of_another_type_than_the_known_one_is_an_alarm(tmp_path: Path, port: str) -> None:
    known_hosts, key = tmp_path / "known_hosts", tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    said = f"No ECDSA host key is known for git.example.com and you have requested strict checking.\n{NO_READ}"
    url = f"ssh://git@git.example.com{port and f':{port}'}/acme/fleet.git"
    remote = check_address(url, Credentials(known_hosts=known_hosts))
    public = key.with_suffix(".pub").read_text()
    for name in ("", "other.example.com", "@revoked *"):
        known_hosts.write_text(f"{name} {public}" if name else "")
        error = failure("fetching", said, remote)
        assert type(error) is InvalidInput
        assert "OVERSPILL_KNOWN_HOSTS" in str(error)
    known_hosts.write_text(f"{f'[git.example.com]:{port}' if port else 'git.example.com'} {public}")
    for hashed in (False, True):
        if hashed:
            subprocess.run(["ssh-keygen", "-q", "-H", "-f", known_hosts], check=True, capture_output=True)
            assert "example" not in known_hosts.read_text()
        error = failure("fetching", said, remote)
        assert isinstance(error, HostKeyChanged)
        assert "No ECDSA host key is known" in str(error)
        assert "by another way than this connection" in str(error)


def test_hook_that_gives_no_reason_is_for_the_host_to_explain() -> None:
    error = rejection("pushing", "[remote rejected] (pre-receive hook declined)", "", SSH, branch="placements")
    assert "the host's log says more" in str(error)
    protected = "remote: GitLab: You are not allowed to push code to protected branches on this project."
    error = rejection("pushing", "[remote rejected] (pre-receive hook declined)", protected, SSH, branch="placements")
    assert "allow this login to push" in str(error)


def test_what_is_said_is_bounded_and_sends_a_terminal_no_commands() -> None:
    said = "".join(f"remote: line {number} \x1b[31m{'x' * 5000}\n" for number in range(500))
    error = str(failure("fetching", f"{said}No user exists for uid 7\n{said}", SSH))
    assert len(error) < 3000
    assert "uid 7" in error or "line 499" in error
    assert "\x1b" not in error
    assert len(reason("y" * (10 << 20))) < 400


@pytest.mark.parametrize("word", ["repository ", "@", "a://", "permission ", "- -> ", "branch ", "secret", "host key "])
def test_what_is_said_is_read_in_linear_time(word: str) -> None:
    """Each takes some milliseconds, and minutes where a pattern goes back over it."""
    said = word * (64 * 1024 // len(word))
    assert len(str(failure("fetching", said, SSH))) < 3000
    assert len(str(rejection("pushing", "[remote rejected] (x)", f"remote: {said}", SSH, branch="placements"))) < 3000


def _said_by_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> OverspillError:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >&2 <<'X'\n{said}X\nexit 255\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    with (
        GitRepository("git@git.example.com:acme/fleet.git", cache=tmp_path / "cache") as repository,
        pytest.raises(OverspillError) as caught,
    ):
        repository.fetch()
    return caught.value


def test_words_of_ssh_come_through_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = _said_by_ssh(tmp_path, monkeypatch, CHANGED)
    assert isinstance(error, HostKeyChanged)


def test_words_of_a_hook_come_through_git(remote, tmp_path: Path) -> None:
    commit = remote.commit("main", {"a": "1"})
    hook = Path(remote.path) / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'Commit message does not follow the pattern JIRA-1' >&2\nexit 1\n")
    hook.chmod(0o755)
    with GitRepository(str(remote.path), cache=tmp_path / "cache", credentials=Credentials()) as repository:
        repository.fetch()
        with pytest.raises(InvalidInput, match=r"pattern JIRA-1.*OVERSPILL_COMMIT_TRAILERS"):
            repository.move_head("proposals/x", old=None, new=commit)


def test_refusal_of_a_rate_limit_on_a_push_is_waited_out() -> None:
    error = rejection(
        "pushing", "[remote rejected] (rate limit)", "remote: too many requests, retry later", SSH, branch="placements"
    )
    assert isinstance(error, Transient)
    assert error.pause is not None


PROC_RECEIVE = """\
#!/usr/bin/env python3
import sys

def lines():
    while size := int(sys.stdin.buffer.read(4), 16):
        yield sys.stdin.buffer.read(size - 4)

def answer(*lines):
    for line in lines:
        sys.stdout.buffer.write(b"%04x%b" % (len(line) + 4, line))
    sys.stdout.buffer.write(b"0000")
    sys.stdout.flush()

list(lines())
answer(b"version=1\\n")
refs = [line.split()[2] for line in lines()]
answer(*(b"ng %b REASON\\n" % ref for ref in refs))
"""
"""A host's hook that refuses each ref for a reason of its own (gitprotocol, proc-receive)."""


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\x0b", "\\n"], ids=ascii)
def test_reason_of_a_host_is_read_whatever_line_ends_it_has(remote, tmp_path: Path, end: str) -> None:
    remote.commit("main", {"fleet.yaml": "a"})
    remote.git("config", "receive.procReceiveRefs", "refs/")
    hook = Path(remote.path) / "hooks" / "proc-receive"
    reason = "".join(f"\\x{byte:02x}" for byte in end.encode()) if end != "\\n" else end
    hook.write_text(PROC_RECEIVE.replace("REASON", f"atomic push failure){reason}!\\tx"))
    hook.chmod(0o755)
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        source = repository.fetch().source
        marks = DeliveryMarks(told=source, sending=source)
        for push in (
            lambda: repository.move_head("overspill/a", old=None, new=source),
            lambda: repository.deliveries.move("chat", DeliveryMarks(told=None, sending=None), marks),
        ):
            with pytest.raises(Transient, match="atomic push failure"):
                push()
