"""Recognises values that look like credentials, so that none reaches git.

`credential` is called by `safety` on every string leaf. A value is judged by its form (a known prefix, a private key, a
token of three dotted parts, a password in a URL), by the name of its field, and by its randomness. References to a
secret pass: placeholders (``<your-token>``), references, expressions, and values that SOPS has encrypted. The value
itself is never part of an answer. `redacted` is for foreign texts that messages quote.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

MIXED = "(?=[a-z0-9_.-]{0,64}+[A-Z])"
"""Distinguishes a token with dashes from a name: no name of Kubernetes has a capital letter.

A token has one early; a look ahead without an end would read a text of many beginnings once for each.
"""

FORMS: tuple[tuple[str, str, str], ...] = (
    ("a private key", "-----BEGIN |AGE-", r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAGE-SECRET-KEY-1[0-9A-Z]{20}"),
    ("an Overspill token", "ovs_", rf"\bovs_{MIXED}[A-Za-z0-9_-]{{43}}"),
    ("a GitHub token", "gh[pousr]_|github_", r"\bgh[pousr]_[A-Za-z0-9]{30}|\bgithub_pat_[A-Za-z0-9_]{30}"),
    ("a GitLab token", "gl(?:pat|ptt|dt|rt|cbt|soat)-", rf"\bgl(?:pat|ptt|dt|rt|cbt|soat)-{MIXED}[A-Za-z0-9_.-]{{18}}"),
    ("a Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{25}"),
    (
        "an API key",
        "sk-|nvapi-|gsk_",
        rf"\bsk-{MIXED}[A-Za-z0-9_-]{{24}}|\bnvapi-{MIXED}[A-Za-z0-9_-]{{30}}|\bgsk_[A-Za-z0-9]{{30}}",
    ),
    ("an AWS key", "AKIA|ASIA", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("a Google API key", "AIza", r"\bAIza[0-9A-Za-z_-]{35}"),
    (
        "a Slack token",
        "xox|hooks[.]slack",
        rf"\bxox[abeoprs]-{MIXED}[0-9A-Za-z-]{{10}}|hooks\.slack\.com/services/T[0-9A-Z]+/B",
    ),
    (
        "a package registry token",
        "npm_|pypi-|dckr_",
        r"\bnpm_[A-Za-z0-9]{30}|\bpypi-AgE[A-Za-z0-9_-]{30}|\bdckr_pat_[A-Za-z0-9_-]{20}",
    ),
    (
        "a signed token",
        "eyJ",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,8192}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8}",
    ),
    (
        "a password in a URL",
        "://",
        r"\b[a-z][a-z0-9+.-]{1,20}://(?:\{\{?[^{}\n]{0,80}\}\}?|[^\s/:@<>{}]){1,100}:[^\s/@<>${}]{3,200}@",
    ),
    ("an authorization header", "", r"(?i:\b(?:bearer|basic) )(?=\S*\d)[A-Za-z0-9+/_.=-]{16}"),
)
"""Each form's name, a part that every text of that form contains (the last form is searched for alone), and the form.

Most texts contain no such part, and that check is ten times as fast as matching the form.
"""
_FORM = re.compile("|".join(f"(?P<f{index}>{pattern})" for index, (_, _, pattern) in enumerate(FORMS)))
_PART = re.compile("|".join(part for _, part, _ in FORMS if part))

REDACTED = "<redacted>"
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_REFERENCES = r"(?:\$\([A-Za-z_][\w.-]*\)|\$\{[A-Za-z_]\w*\}|\{\{-?[ ]*[.$]?[A-Za-z_][\w.]*[ ]*-?\}\})+"
"""Variables of Kubernetes and of a shell, and values of a template, none with a value of its own beside it."""
_USER = r"(?:[A-Za-z]?[a-z_-]{0,14}[a-z0-9]|[A-Z_-]{1,16})?"
"""A short name in one case, such as ``oauth2``: a longer word, a mixed one or one of many digits may be a token."""
_REFERRED_LOGIN = re.compile(rf"(?:(?:{_REFERENCES}|{_USER}):)?{_REFERENCES}@")
"""A login that is no secret."""
_IMAGE_AFTER_PORT = (
    rf"{_REFERENCES}/(?>\{{\{{[^{{}}\n]{{0,80}}\}}\}}|[^\s@<>'\"]){{0,200}}"
    r"@sha(?:256|384|512):(?![^\s<>'\"]{0,200}@)"
)
"""A reference to a port and an image with a digest; any other @ behind it may end a password that has a slash."""
_PORTLESS = r"[^\s/:@<>'\".]+(?<!localhost)"
"""A word of a login, or the name of a host within one network; other names of hosts have a dot."""
_LOGIN = re.compile(
    r"(?<=://)(?:(?>\{\{[^{}\n]{0,80}\}\}|[^\s/:@<>'\"])+"
    rf":(?!\d{{1,5}}/|{_IMAGE_AFTER_PORT})(?>\{{\{{[^{{}}\n]{{0,80}}\}}\}}|[^\s<>'\"]){{1,200}}"
    rf"|{_PORTLESS}:\d{{1,5}}/[^\s<>'\"]{{1,200}}(?=@(?!v?\d|sha(?:256|384|512):))"
    r"|[^\s/:@<>'\"]+:\d{1,5}/[^\s<>'\"]{1,200}(?=@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,10}(?:[:/?#\s'\"]|\Z))"
    r"|(?>\{\{[^{}\n]{0,80}\}\}|[^\s/@<>'\"])+)@"
)
"""A login in a URL, up to the last @ where it has a password: people put slashes into those. A port is no password,
unless its host is a bare word, or a host follows the @, as in ``bot:1234/S3cret@git.example.com``."""
_QUOTE = r"\\*[\"']?"
_NAMED = re.compile(
    r"(?i)((?:password|passwd|passphrase|\bpwd(?!=/)|token|secret|api[_-]?key|access[_-]?key|signature|\bsig|credential"
    rf"|\bauth){_QUOTE}(?:,[ \t]*{_QUOTE}value{_QUOTE}[ \t]*:|=|:(?=[ \t]*\\*[\"']))[ \t]*{_QUOTE})"
    rf"(?!{_REFERENCES}(?:[\s&\"'\\,;<>]|\Z))"
    r"(?:[^\s&\"'\\,;<>]|\\(?![\"'])){4,}+"
)
"""A value under a name of credentials: an assignment, a field in quotes at any depth, a container's variable."""
_SPOKEN = re.compile(
    r"(?i)((?:\b(?:password|passwd|passphrase|pwd)|api[_-]?key)[ \t]*:[ \t]+"
    r"|(?<!-)--[a-z-]{0,60}(?:password|token|secret|key)[ \t])"
    rf"(?!{_REFERENCES}(?:[\s\"',;<>]|\Z))"
    r"(?=\S*\d)[^\s\"',;<>]{6,}"
)
"""A value without quotes: a header, a line of a form, a flag. A word without a digit is usually prose."""
_NAMES = ("pass", "pwd", "token", "secret", "key", "sig", "credential", "auth")
_TOKEN_LIKE = re.compile(f"(?:{_FORM.pattern})[A-Za-z0-9_.+/=~-]*")
_LONG = re.compile(r"(?<!\S)\S{15,}")
"""Words that may hold a token; each form in `FORMS` is longer, except URLs and those with Bearer or Basic."""
_HEADER = re.compile(r"(?i)\b(?:bearer|basic) ")

_PASSWORD = re.compile(r"(?:password|passwd|passphrase|pwd)$")
_TOKEN = re.compile(r"(?:token|secret|apikey|accesskey|secretkey|secretaccesskey|privatekey|credentials?|signingkey)$")
_POINTS = re.compile(
    r"<[^<>]*>|\$\{?[A-Za-z_].*|\$\(.*\)|\{\{.*\}\}|ENC\[.*\]|(?:ref|vault|awssm|gcpsm|azkv|op|env|file|secret):.*"
    r"|(?:change-?me|replace-?me|redacted|xxx+|\*+|\.\.\.|todo|none|null|true|false|example)",
    re.IGNORECASE | re.DOTALL,
)
_SAFE = re.compile(r"(?:sha(?:256|384|512)[:-]|/|https?://|LS0tLS1CRUdJTiBD)")
_SHORTEST = 8
"""Characters below which a word under a name of credentials is no realistic password."""

_WORD = re.compile(r"[A-Za-z0-9+/_=-]{32,256}")

_MAX_NAME = 64
"""Characters at the end of a name that are judged: the noun comes last, as in ``dbAdminPassword``."""

RANDOMNESS = 4.5
"""Bits for each character above which a long word counts as a key; English words have about 4, base64 has 6."""


def credential(text: str, name: str = "") -> str:
    """Return the kind of credential that a value resembles, or an empty text.

    `name` is the key of the value, or the name of the environment variable that it sets.
    """
    if len(text) < 4:  # noqa: PLR2004  # too short to be worth anything to anybody
        return ""
    if (_PART.search(text) or _HEADER.search(text)) and (match := _FORM.search(text)):
        return FORMS[int((match.lastgroup or "f0")[1:])][0]
    if "\n" in text or _POINTS.fullmatch(text.strip()):
        return ""
    promised = _credential_kind(name[-_MAX_NAME:])
    if promised == "a password" or (promised and _looks_random(text)):
        return promised
    if _WORD.fullmatch(text) and not _SAFE.match(text) and _random(text):
        return "a random key"
    return ""


def redacted(text: str) -> str:
    """Redact credentials in a text: logins of URLs, private keys, tokens, and values under names of credentials.

    The surrounding text stays, and shows where to look; so do references in place of credentials, such as
    ``$(PASSWORD)``. Redacting twice changes nothing more.
    """
    if "PRIVATE KEY" in text:
        text = _KEY_BLOCK.sub(REDACTED, text)
    if "://" in text:
        text = _LOGIN.sub(_without_login, text)
    if any(map(text.lower().__contains__, _NAMES)):
        text = _SPOKEN.sub(rf"\1{REDACTED}", _NAMED.sub(rf"\1{REDACTED}", text))
    if _HEADER.search(text) is not None:
        return _TOKEN_LIKE.sub(REDACTED, text)
    if _PART.search(text) is None:
        return text
    return _LONG.sub(_clear, text)


def without_query(url: str) -> str:
    """Return the address of a repository as messages show it: its query may be a credential of any form."""
    address, query, _ = url.partition("?")
    return f"{address}?{REDACTED}" if query and "://" in address else url


def without_secrets(url: str) -> str:
    """Return the address of a repository for a command line: without the login of a URL, but with the user of ssh."""
    address = url.partition("?")[0]
    if "://" not in address:
        return redacted(address)
    scheme, _, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    login, _, host = authority.rpartition("@")
    bare = redacted(f"{scheme}://{host}{slash}{path}")
    user = login.partition(":")[0] if scheme.endswith("ssh") else ""
    return bare.replace("://", f"://{user}@", 1) if user and not credential(user) else bare


def _without_login(login: re.Match[str]) -> str:
    return login[0] if _REFERRED_LOGIN.fullmatch(login[0]) else f"{REDACTED}@"


def _clear(word: re.Match[str]) -> str:
    return _TOKEN_LIKE.sub(REDACTED, word[0])


@lru_cache(maxsize=1024)
def _credential_kind(name: str) -> str:
    """Return the kind of credential that a name stands for; cached, since the items of a list share one name."""
    key = re.sub(r"[^a-z]", "", name.lower())
    if _PASSWORD.search(key):
        return "a password"
    return "a token" if _TOKEN.search(key) and not key.startswith("existing") else ""


def _looks_random(text: str) -> bool:
    """Distinguish a token from the name of a Secret: a word with a digit, and not short parts joined by dashes."""
    if len(text) < _SHORTEST or any(char.isspace() for char in text) or not any(char.isdigit() for char in text):
        return False
    return max(len(part) for part in re.split(r"[-./]", text)) >= _SHORTEST or text != text.lower()


def _random(text: str) -> bool:
    kinds = (str.islower, str.isupper, str.isdigit)
    if not all(any(kind(char) for char in text) for kind in kinds):
        return False
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values()) >= RANDOMNESS
