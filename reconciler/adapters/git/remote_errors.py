"""The meaning of what git, ssh and hosts say when a command on the remote fails: one table, and the errors of it.

Every row says what a person can do, and whether waiting helps. What no row knows is shown as it was said, and is tried
again. All texts are bounded, redacted and on one line.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from reconciler.adapters.git.known_hosts import are_keys_known
from reconciler.adapters.git.remote import Remote
from reconciler.errors import Conflict, HostKeyChanged, InvalidInput, OverspillError, Transient, one_line
from reconciler.text.spelling import closest

RATE_LIMIT_PAUSE = timedelta(seconds=30)
"""First wait after a rate limit; git does not pass on the host's Retry-After."""


class _Reaction(Enum):
    """What a failure needs."""

    PERSON = "a person"
    TIME = "time: the same call may work later, and the remedy is for where it never does"
    QUIET = "time without calls: a rate limit"
    ALARM = "a person, at once: somebody may be between us and the host"


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A row of the table; the first row that matches counts."""

    pattern: re.Pattern[str]
    reaction: _Reaction
    remedy: str
    """Empty for the settings of the login, or where nothing but time helps."""


def _row(reaction: _Reaction, pattern: str, remedy: str) -> _Meaning:
    return _Meaning(re.compile(pattern, re.IGNORECASE), reaction, remedy)


_KEY_FILE = "mount the key with mode 0400, owned by the user that runs this (defaultMode: 0400, fsGroup unset)"
_FINGERPRINT = (
    "send nothing to this host; ask who runs it, by another way than this connection, whether its key was replaced and"
    " what the fingerprint of the new one is; only where both agree put the key that they publish into known_hosts"
)
_LOGIN_MAY = "give this login access to the repository"
_MESSAGE = "except this login from the rule, or let it take our messages; OVERSPILL_COMMIT_TRAILERS adds lines to them"

_ABORTED = re.compile(r"ref updates aborted by hook|update aborted by the reference-transaction hook")
"""What git says of a `reference-transaction` hook (git refs.c, run_transaction_hook). The server ends with it, and
says of no branch what became of it."""

_UNKNOWN_HOST = _row(
    _Reaction.PERSON,
    r"host key verification failed|no .{0,20}host key is known for|authenticity of host",
    "put the host's key, as its owner publishes it, into the file of OVERSPILL_KNOWN_HOSTS; what ssh-keyscan"
    " prints proves nothing until its fingerprint is compared",
)
_OTHER_TYPE = _row(_Reaction.ALARM, _UNKNOWN_HOST.pattern.pattern, _FINGERPRINT)
"""What ssh says so, and known_hosts has keys of other types for the host: whoever is in between chooses the type."""
_MOVED_AWAY = _row(
    _Reaction.PERSON,
    r"error: 30[12378]|maximum .{0,10}redirects",
    "name the address that the repository has moved to; a login follows no redirect",
)
_MEANINGS = (
    # Alarms (openssh sshconnect.c, sshkey.c).
    _row(
        _Reaction.ALARM,
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|DNS SPOOFING|REVOKED HOST (?:KEY|CERTIFICATE)"
        r"|host (?:key|certificate) .{0,200}(?:has changed|revoked)|differs from the key for the IP address"
        r"|public key does not match pinned"
        r"|key_verify failed|incorrect signature",  # it shows a key that it does not have
        _FINGERPRINT,
    ),
    # Rate limits (docs.github.com rest/using-the-rest-api/rate-limits, docs.gitlab.com security/rate_limits).
    _row(
        _Reaction.QUIET,
        r"error: 429|rate.?limit|too many (?:requests|(?:concurrent )?connections)|abuse detection"
        r"|retry (?:your request )?(?:again )?later"
        r"|exceeded .{0,60}limit of .{0,60}requests",
        "a daemon waits longer each time; a longer OVERSPILL_POLL_INTERVAL asks less often",
    ),
    # The start of a connection, in which no key or login of ours has a part yet (openssh kex.c, dispatch.c).
    _row(
        _Reaction.TIME,
        r"(?:banner exchange|ssh_dispatch_run_fatal|kex_exchange_identification|ssh_exchange_identification): ",
        "see whether a proxy or a balancer answers at that address and port, and not the git host",
    ),
    # Keys and logins of ssh (openssh sshconnect2.c, authfile.c, kex.c, readconf.c).
    _row(
        _Reaction.PERSON,
        r"error in libcrypto|invalid format|key_load_(?:private|public)|unsupported key"
        r"|is not a (?:public|private) key",
        "write the key file whole, with its last line break and without CRLF, unencrypted and in OpenSSH's form"
        " (ssh-keygen -p -m RFC4716 -f KEY), and check it by ssh-keygen -y -f KEY",
    ),
    _row(_Reaction.PERSON, r"are too open|bad permissions|UNPROTECTED PRIVATE KEY", _KEY_FILE),
    _row(
        _Reaction.PERSON,
        r"incorrect passphrase|passphrase supplied|enter passphrase",
        "use a key without a passphrase for OVERSPILL_SSH_KEY: nobody is there to type it",
    ),
    _row(
        _Reaction.PERSON,
        r"load key .{0,300}permission denied|identity file .{0,300}not accessible|load key .{0,300}no such file"
        r"|no such identity",
        "let OVERSPILL_SSH_KEY name a file that the user that runs this can read",
    ),
    _row(
        _Reaction.PERSON,
        r"no matching (?:host key type|key exchange method|cipher|mac)|no mutual signature|error in .{0,40}signature"
        r"|unable to negotiate|agent refused operation|key type .{0,60}not in PubkeyAcceptedAlgorithms"
        r"|RSA key with SHA-?1",
        "use an ed25519 key, and a host that offers algorithms of today; ~/.ssh/config can allow an older one for it",
    ),
    _row(
        _Reaction.PERSON,
        r"too many authentication failures",
        "set OVERSPILL_SSH_KEY, so that this key alone is offered, and not each of an agent",
    ),
    _row(
        _Reaction.PERSON,
        r"no user exists for uid|you don't exist, go away|no address associated with name .{0,40}uid",
        "run as a user that /etc/passwd of the image has, or use https with OVERSPILL_GIT_PASSWORD_FILE",
    ),
    _row(
        _Reaction.PERSON,
        r"cannot run ssh|ssh: not found|ssh: command not found|unable to fork.{0,40}ssh",
        "install an OpenSSH client, or use https with OVERSPILL_GIT_PASSWORD_FILE",
    ),
    _row(
        _Reaction.PERSON,
        r"can't open user config file|bad configuration option|terminating, \d{1,4} bad configuration"
        r"|bad owner or permissions on",
        "mend ~/.ssh/config of the user that runs this",
    ),
    _row(
        _Reaction.PERSON,
        r"certificate invalid: |host certificate",
        "have the host's ssh certificate renewed for this name by the authority that known_hosts names; where it was"
        " not due, somebody may be in between",
    ),
    _UNKNOWN_HOST,
    _row(
        _Reaction.TIME,
        r"no message for end users",
        "the host's log says why; Gitea and Forgejo say no more of a commit without the signature that a rule of the"
        " branch asks for, which takes OVERSPILL_SIGNING_KEY_FILE",
    ),
    # What a server or a hook says of itself while it has judged nothing.
    _row(
        _Reaction.TIME,
        r"maintenance|read-?only (?:mode|file system)|is currently read-?only|temporar(?:y|ily)|timed out|time-?out"
        r"|(?:internal|unexpected|server) error|bad gateway"
        r"|(?:api|backend|database|gateway|server|service) (?:is )?(?:currently )?"
        r"(?:busy|down|overloaded|unavailable|unreachable)",
        "",
    ),
    _row(
        _Reaction.TIME,
        r"unpacker error|unpack failed|unable to create temporary object directory",
        "have the host's disk looked at, and the owner of the repository's files",
    ),
    _row(
        _Reaction.TIME,
        _ABORTED.pattern,
        "see what the reference-transaction hook of the host asks for; the host's log says more",
    ),
    # Accounts and organisations (docs.github.com authentication/troubleshooting-ssh, docs.gitlab.com user/ssh).
    _row(
        _Reaction.PERSON,
        r"SAML SSO|SSO (?:session|authorization)|single sign-on|enabled or enforced SAML",
        "authorise this token or key for the organisation's single sign-on at the host",
    ),
    _row(
        _Reaction.PERSON,
        r"ssh key audit|key .{0,60}unverified",
        "approve the key of OVERSPILL_SSH_KEY at the host, among the keys of its account or repository",
    ),
    _row(
        _Reaction.PERSON,
        r"account (?:(?:is|has been|was) )?(?:currently |now )?(?:suspended|blocked|locked|disabled|deactivated)"
        r"|suspended account|your account has been|pending approval|must accept the terms|two.factor|\b2FA\b"
        r"|password (?:has )?expired|deploy key .{0,60}disabled|error: 402|payment required",
        "have the account of this login put right at the host, or use another one",
    ),
    _row(
        _Reaction.PERSON,
        r"(?:IP|address) .{0,60}(?:allow ?list|not allowed to access)|ip allow list",
        "put the address that this runs at on the host's list of allowed ones",
    ),
    _row(
        _Reaction.PERSON,
        r"marked as read.only|read.only (?:mirror|deploy key|key|copy)|is a mirror|deploy key does not have write",
        "let the deploy key write, or name the repository that the mirror is made from",
    ),
    _row(
        _Reaction.PERSON,
        r"error: 451|access blocked|repository .{0,60}(?:is |has been )(?:disabled|blocked|locked|deleted)|DMCA",
        "have the repository put right at the host",
    ),
    _row(
        _Reaction.PERSON,
        r"(?:has been|is|was) archived|archived (?:so|repository|project)|is read-?only.{0,40}archiv",
        "take the repository out of the archive, or name the one that replaces it",
    ),
    _row(
        _Reaction.PERSON,
        r"quota|storage (?:limit|size).{0,60}exceed|exceeded? .{0,60}(?:storage|repository size)|repository size limit"
        r"|account limit",
        "free space at the host, or have the quota raised",
    ),
    # A login page in place of the repository (git remote-curl.c, http.c).
    _row(
        _Reaction.PERSON,
        r"unable to update url base from redirection|not valid: .{0,60}is this a git repository",
        "the host leads to a login page, or the URL is no repository's: renew the token of OVERSPILL_GIT_PASSWORD_FILE"
        " (Azure DevOps answers so when it has expired), and check the URL",
    ),
    _row(
        _Reaction.TIME,
        r"bad line length character",  # a page or a greeting where git's protocol begins
        "see that the login's shell at the host prints nothing, that the URL is the repository's, and that no proxy or"
        " login page answers in its place",
    ),
    _MOVED_AWAY,
    # TLS and proxies (curl lib/strerror.c, vtls).
    _row(
        _Reaction.PERSON,
        r"wrong version number"
        r"|SSL routines:.{0,60}(?:unsupported protocol|alert protocol version|no protocols available)",
        "check the port of the URL and the proxy: what answers there speaks no TLS, or none of today",
    ),
    _row(
        _Reaction.PERSON,
        r"certificate|SSL(?: certificate)? problem|unable to get local issuer|no alternative certificate subject"
        r"|error setting certificate",
        "where the organisation has authorities of its own, let GIT_SSL_CAINFO name their file; else the host's"
        " certificate has expired, or is another host's, and somebody may be in between",
    ),
    _row(
        _Reaction.PERSON,
        r"error: 407|proxy authentication|CONNECT tunnel failed, response 40[37]|from proxy after CONNECT",
        "put the login of the proxy into HTTPS_PROXY, or the host into NO_PROXY",
    ),
    _row(_Reaction.PERSON, r"could not resolve proxy", "mend the host of HTTPS_PROXY, or put ours into NO_PROXY"),
    # Logins and repositories.
    _row(
        _Reaction.PERSON,
        r"authentication failed|could not read (?:username|password)|invalid username|error: 401"
        r"|HTTP Basic: Access denied|must use a personal access token"
        r"|(?:token|credential)s? .{0,40}(?:expired|revoked|invalid)|invalid credentials|password authentication"
        r".{0,40}removed|support for password authentication",
        "",
    ),
    _row(
        _Reaction.PERSON,
        r"error: 413|request entity too large|body too large",
        "have the host's proxy take larger requests (nginx: client_max_body_size), or use ssh",
    ),
    _row(
        _Reaction.PERSON,
        r"ssh key .{0,60}(?:expired|revoked|not (?:found|valid))|permission denied \(.{0,100}\)"
        r"|permission denied, please try again",
        "add the public key of OVERSPILL_SSH_KEY to the host, as a deploy key with write access or to an account that"
        " may see the repository",
    ),
    _row(
        _Reaction.PERSON,
        r"error: 403|access (?:was |is )?denied|permission .{0,200}denied|not (?:allowed|authori[sz]ed|permitted) to "
        r"|(?:not|n't) have .{0,40}(?:access|permission)|need the .{0,60}permission|access .{0,60}not granted",
        _LOGIN_MAY,
    ),
    _row(
        _Reaction.PERSON,
        r"URL rejected|format or missing URL|port number was not|not appear to be a git repository"
        r"|repository .*not found|error: 404|error: 410|project you were looking for"
        r"|does not exist or you do not have permission|TF401019|could not be found",
        "check the repository's URL, and that this login may see it",
    ),
    _row(
        _Reaction.PERSON,
        r"mismatched algorithms",
        "use a repository with SHA-1 object ids, as engines and hosts do",
    ),
    _row(_Reaction.PERSON, r"dubious ownership", "let the repository's directory belong to the user that runs this"),
    _row(
        _Reaction.PERSON,
        r"transport '.{0,100}' not allowed|unsupported protocol|protocol .{0,20}not supported"
        r"|unable to find remote helper|remote helper .{0,60}aborted",
        "use https, ssh or file",
    ),
    _row(
        _Reaction.PERSON,
        r"does not support .{0,40}--?atomic",
        "set spec.branchPerCluster: false in the Fleet, or move to a host that takes all branches of a push or none",
    ),
    # Whatever else a server calls wrong about a request, but for what passes by itself.
    _row(
        _Reaction.PERSON,
        r"error: 4(?!08|09|21|23|25|29)\d\d",
        "check the repository's URL, the login, and the proxy in between",
    ),
)
"""Failures of any command."""

_RULES = (
    _row(
        _Reaction.PERSON,
        r"checked out",
        "check another branch out in that repository, or name a bare one (`git clone --bare`)",
    ),
    _row(
        _Reaction.PERSON,
        r"create or update workflow|\bworkflows? (?:scope|permission)",
        "let this login write workflows, or keep .github/workflows out of what is placed",
    ),
    _row(
        _Reaction.PERSON,
        r"file ?names? .{0,200}(?:prohibited|not allowed|pattern)|prohibited by the pattern|file path.{0,60}restrict",
        "let the host's rule of file names take the files of the output branch, or rename the file in its template",
    ),
    _row(
        _Reaction.PERSON,
        r"must be signed|unsigned|verified signature|signed (?:commit|off)|signature .{0,40}(?:required|missing)"
        r"|not signed|signing",
        "set OVERSPILL_SIGNING_KEY_FILE, and add its public key to the account of the committer; for Signed-off-by set"
        " OVERSPILL_COMMIT_TRAILERS",
    ),
    _row(
        _Reaction.PERSON,
        r"commit message|message does not|message .{0,60}(?:pattern|match|must)",
        _MESSAGE,
    ),
    _row(
        _Reaction.PERSON,
        r"(?:committer|author)('s)?.{0,60}(?:e-?mail|address|not a|pattern|verified|unknown|not .{0,20}member)"
        r"|e-?mail .{0,60}(?:pattern|not verified|not match)|invalid (?:committer|author)|e-?mail privacy|GH007",
        "set OVERSPILL_COMMITTER_NAME and OVERSPILL_COMMITTER_EMAIL to those of the account of this login",
    ),
    _row(
        _Reaction.PERSON,
        r"GH013.{0,2000}secret|push protection|secret.{0,60}(?:detected|found|scanning)|GITGUARDIAN"
        r"|leaks? (?:found|detected)",
        "look at the file that the host names: take the secret out of the template, and revoke it; where it is none,"
        " allow it at the host",
    ),
    _row(
        _Reaction.PERSON,
        r"GH001|file size limit|(?:larger|greater) than|exceeds? .{0,60}(?:size|limit)|too large",
        "make the template smaller, or raise the host's limit of file sizes",
    ),
    _row(_Reaction.PERSON, r"\bLFS\b|locked by", "unlock the files of the output branch, and let it be free of LFS"),
    _row(
        _Reaction.PERSON,
        r"(?:through|use) (?:a )?pull request|required status check|review.{0,20} required|requires? .{0,20}review",
        "except this login from the rule that asks for pull requests, reviews or checks on the output branch",
    ),
    _row(
        _Reaction.PERSON,
        r"branch name|branch .{0,60}(?:pattern|naming)",
        "let the rule of branch names take the output branch, or name another with OVERSPILL_OUTPUT_BRANCH",
    ),
)
"""Rules of a host on the content of a push: the right to push does not help."""

_MOVED = re.compile(
    r"non-fast-forward|fetch first|stale info|cannot lock ref|incorrect old value|failed to update ref"
    r"|reference already exists|but expected|atomic transaction failed"
)
_LACKING = "shallow update not allowed"
"""Git's answer to commits that it cannot take, since neither the push nor its repository has those before them."""
_REFUSED = re.compile(r"^!\t([^\t\n]*)\t(.*)$", re.MULTILINE)
_IN_THE_WAY = re.compile(r"'refs/heads/([^']+)' exists; cannot create '([^']+)'")
"""git keeps no branch below the name of another. The second name is the full one of the branch that is refused."""
_LOCKED = re.compile(r"cannot lock ref '([^']+)': Unable to create ")
_MAY_NOT = re.compile(
    r"protected (?:branch|ref)|not permitted|not allowed|prohibited|denied|deny|denying|GH006"
    r"|do not have permission|insufficient|unauthori[sz]ed",
    re.IGNORECASE,
)
_DECLINED = re.compile(r"declined|GH\d{3}|rule violations|hook")


def _missing(path: Path) -> str:
    """Say what of a path does not exist on this machine, with the nearest directory beside it."""
    if not path.parent.is_dir():
        return f"{path.parent} does not exist (try another path, or a URL)"
    try:
        near = closest(path.name, (each.name for each in path.parent.iterdir() if each.is_dir()))
    except OSError:
        near = ""
    return f"the directory does not exist (try {path.parent / near if near else 'another path, or a URL'})"


def _repository_around(directory: Path) -> Path | None:
    """Return the work tree that a directory of this machine lies in; None without one."""
    return next((parent for parent in directory.parents if (parent / ".git").exists()), None)


def failure(doing: str, stderr: str, remote: Remote) -> OverspillError:
    """Return the error of a failed command, from what was said: `stderr` is redacted already."""
    said = stderr[-_MOST:]
    if remote.directory and not remote.directory.exists():
        return InvalidInput(f"{doing}: {_missing(remote.directory)}")
    if remote.directory and "invalid gitfile format" in said and remote.directory.is_file():
        return InvalidInput(f"{doing}: is a file (name the directory of the repository)")
    if remote.directory and "not appear to be a git repository" in said and remote.directory.is_dir():
        there = shlex.quote(str(remote.directory))
        begin = f"git init -b main {there} && git -C {there} add -A && git -C {there} commit -m 'Begin the fleet'"
        around = _repository_around(remote.directory)
        return InvalidInput(
            f"{doing}: the directory is no git repository (only `overspill check` reads plain directories; other"
            f" commands read what is committed, try: {begin})"
            if around is None
            else f"{doing}: the directory lies in the git repository {around}, and is none itself (try --repo"
            f" {shlex.quote(str(around))}, or give the directory a repository of its own: {begin})"
        )
    meaning = _meaning(_words(said, remote), _MEANINGS)
    if meaning is None:
        return Transient(f"{doing}: {reason(said)}")
    if meaning is _UNKNOWN_HOST and are_keys_known(remote):
        meaning = _OTHER_TYPE
    if not meaning.remedy and _asks_for_another(said, remote):
        meaning = _MOVED_AWAY
    return _error(doing, meaning, _lines(said), remote)


def _asks_for_another(said: str, remote: Remote) -> bool:
    """Return whether git lacks a login for another address than the remote's, to which that has led it."""
    asked = _LACKS_LOGIN.search(said)
    return asked is not None and not remote.is_at(asked[1])


def parse_rejections(listing: bytes) -> list[tuple[str, str]]:
    """Read ``git push --porcelain``: the refspec and the summary of each ref that was refused.

    The host chooses the words of a summary, with any line ends and tabs.
    """
    return _REFUSED.findall(listing.decode(errors="replace"))


def find_branches_in_the_way(said: str) -> dict[str, str]:
    """Return the short names of branches in the way, by the full name of the branch that git cannot create for it."""
    return {refused: blocker for blocker, refused in _IN_THE_WAY.findall(said[-_MOST:])}


def find_locked_branches(said: str) -> frozenset[str]:
    """Return the full names of branches whose file the host could not lock: another push has it, or one has died."""
    return frozenset(_LOCKED.findall(said[-_MOST:]))


def is_abort_by_hook(said: str) -> bool:
    """Return whether a `reference-transaction` hook of the host has aborted a push, which may be for any branch."""
    return _ABORTED.search(said[-_MOST:]) is not None


def rejection(doing: str, summary: str, stderr: str, remote: Remote, *, branch: str) -> OverspillError:
    """Return the error of a rejected branch or other ref, from its summary of `git push --porcelain`.

    The summaries of a concurrent push are those of git, GitHub, GitLab and Gitea
    (docs/background/upstream/git.md, "Rejected pushes"). receive.denyNonFastForwards answers non-fast-forward as well.
    """
    said = stderr[-_MOST:]
    remarks = [line.removeprefix("remote:").strip() for line in _lines(said) if line.startswith("remote:")]
    text = "; ".join([summary, *remarks])
    in_the_way = find_branches_in_the_way(text).get(branch)
    if in_the_way:
        return InvalidInput(
            f"{doing}: {_shorten([summary, *remarks], '')}"
            f" (try: rename or remove branch {in_the_way!r}, which is in its way)"
        )
    if _LACKING in summary:
        return InvalidInput(
            f"{doing}: {_shorten([summary, *remarks], '')}: the remote lacks commits before these"
            " (look with `overspill restore --dry-run`)"
        )
    if _MOVED.search(summary):
        return Conflict(f"{doing}: {_shorten([summary, *remarks], '')}")
    words = _words("\n".join((summary, *remarks)), remote, branch)
    meaning = _meaning(words, _RULES) or _meaning(words, _MEANINGS)
    if meaning is not None and meaning.remedy != _LOGIN_MAY:
        return _error(doing, meaning, [summary, *remarks], remote)
    shown = _shorten([summary, *remarks], "")
    if meaning is not None or _MAY_NOT.search(words):
        return InvalidInput(
            f"{doing}: {shown} (try: allow this login to push to the branch; its commits are never forced)"
        )
    if _DECLINED.search(words):
        return InvalidInput(
            f"{doing}: {shown} (try: see which rule or hook of the host declines it; the host's log says more)"
        )
    return Transient(f"{doing}: {shown}")


def reason(stderr: str) -> str:
    """Return what was said on one line, without progress and advice."""
    return _shorten(_lines(stderr[-_MOST:]), "") or "git said nothing"


def _meaning(words: str, table: tuple[_Meaning, ...]) -> _Meaning | None:
    """Find the row of what was said."""
    return next((meaning for meaning in table if meaning.pattern.search(words)), None)


def _words(said: str, remote: Remote, branch: str = "") -> str:
    """Return what was said without names, any of which may be ``quota``, ``maintenance`` or ``signing``."""
    if "://" in remote.url:
        parts = urlsplit(remote.url)
        host, path = parts.hostname or "", parts.path.strip("/")
    else:
        address, _, path = remote.url.rpartition(":")
        host, path = address.rpartition("@")[2], path.strip("/")
    ours = {host, path, path.removesuffix(".git"), branch, branch.removeprefix("refs/heads/")}
    names = "|".join(map(re.escape, sorted(ours - _IN_MESSAGES - {""}, key=len, reverse=True))) or "(?!)"
    return re.sub(rf"(?<![\w/-])/?(?:{names})(?![\w-])", "", _NAME.sub("", _cut(said)), flags=re.IGNORECASE)


def _error(doing: str, meaning: _Meaning, lines: list[str], remote: Remote) -> OverspillError:
    """Write the error of a known failure, with the lines that were said of it."""
    match = meaning.pattern.search("\n".join(lines))
    shown = _shorten(lines, match[0] if match else "")
    login = not meaning.remedy or meaning.remedy == _LOGIN_MAY or "OVERSPILL_SSH_KEY to the host" in meaning.remedy
    remedy = (
        remote.credentials.remedy if not meaning.remedy or (login and remote.credentials.withheld) else meaning.remedy
    )
    if meaning.reaction is _Reaction.QUIET:
        return Transient(f"{doing}: {shown} (a rate limit: {remedy})", pause=RATE_LIMIT_PAUSE)
    if meaning.reaction is _Reaction.TIME:
        return Transient(f"{doing}: {shown}{f' (if it stays: {meaning.remedy})' if meaning.remedy else ''}")
    if meaning.reaction is _Reaction.ALARM:
        return HostKeyChanged(
            f"{doing}: ALARM: the host shows another key than the one that is known, so that somebody may be in"
            f" between: {shown} (try: {remedy})"
        )
    return InvalidInput(f"{doing}: {shown} (try: {remedy})")


_NAME = re.compile(
    r"\b[a-z][a-z+]{0,9}://[^\s'\"]{1,2000}"  # addresses
    r"|(?<![\w/])[~.]{0,2}/[^\s'\":,;]{1,2000}"  # files
    r"|(?<![\w.-])[\w.-]{1,255}(?:/[\w.-]{1,255}){1,30}"  # refs, repositories and files
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,253}"  # people, at hosts
    r"|(?<![\w-])[a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9][a-z0-9-]{0,62}){1,20}\b"  # hosts and files
    r"|(?<=host: )\S{1,253}|(?<=hostname )\S{1,253}|(?<=proxy: )\S{1,253}|(?<=denied to )(?!deploy)\S{1,253}"
    r"|(?<!\S)\S{1,253}(?= port \d)"
    r"|(?<=['\"`])[^\s'\"`]{1,200}(?=['\"`])"
)
"""Names in messages of ssh, git and hosts: sentences have no full stop before a small letter, and quote one word where
it is a name."""
_IN_MESSAGES = frozenset({"git", "ssh", "host", "key", "branch", "repository"})
"""Words of the messages themselves, none of which means anything alone."""
_LACKS_LOGIN = re.compile(r"could not read (?:Username|Password) for '(https?://[^'\n]{1,2000})'")
_MOST = 64 << 10
"""Characters at the end of what was said that are looked at."""
_SHOWN = 1200
"""Characters of it that are shown."""
_LINE = 300
_LONGEST_LINE = 1000
_NOISE = re.compile(
    r"hint: .*|(?:remote: )?\s*"
    r"(?:(?:Enumerating|Counting|Compressing|Resolving|Receiving|Writing|Unpacking|Filtering|Updating)"
    r" .{0,100}|Total \d.{0,100}|Delta compression .{0,100}|[@=*#-]{3,}"
    r"|From \S+|To \S+|Everything up-to-date|POST git-.{0,80}|Warning: Permanently added .*"
    r"|Please make sure you have the correct access rights|and the repository exists\."
    r"|error: failed to push some refs .*"
    r"|Add correct host key in .*|remove with:|ssh-keygen -f .{0,300} -R .*|\S{1,100} -> \S{1,100}"
    r"|[!*+=-] .{0,200} -> .*)?"
)
"""Progress, git's own advice, which does not fit here, and what the summary of a push says by itself."""


def _cut(said: str) -> str:
    """Cut lines that are longer than any message, on which patterns would take their time."""
    return "\n".join(line[:_LONGEST_LINE] for line in re.split(r"[\r\n]+", said))


def _lines(said: str) -> list[str]:
    """Return the lines of what was said that tell something; those of ssh's frames without the frame."""
    lines = (line.strip().strip("@").strip() for line in _cut(said).split("\n"))
    return [line for line in dict.fromkeys(lines) if not _NOISE.fullmatch(line) and line != "remote:"]


def _shorten(lines: list[str], telling: str) -> str:
    """Join lines into one that is bounded; the line with what was understood is always among them."""
    cut = [one_line(line if len(line) <= _LINE else f"{line[: _LINE - 3]}...") for line in lines]
    if sum(map(len, cut)) > _SHOWN:
        told = [line for line in cut if telling and telling[:_LINE] in line][:1]
        cut = [*cut[:2], "...", *told, "...", *cut[-2:]] if told else [*cut[:2], "...", *cut[-2:]]
    return "; ".join(cut)
