"""What the environment says about how to run.

`VARIABLES` lists all there is to say, for what is read below and for the table in docs/operations.md.
"""

from __future__ import annotations

import atexit
import difflib
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from reconciler.access.oidc import Issuer
from reconciler.access.rate_limit import Rate
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.push import Endpoint
from reconciler.variables import PREFIX, Listen, Reader

VARIABLES: Mapping[str, str] = {
    "REPO": "the fleet repository: an https, ssh or file URL, or a path",
    "SOURCE_BRANCH": "the branch that people write",
    "OUTPUT_BRANCH": "the branch that Overspill writes",
    "OBSERVATIONS": "a file or directory of observations",
    "KUBECONFIG": "a kubeconfig whose contexts are clusters to watch",
    "LOGIN_PLUGINS": "programs that Argo CD's cluster Secrets may run here to log in",
    "PROMETHEUS": "the address of the Prometheus that policies' queries are put to",
    "PROMETHEUS_INTERVAL": "how often they are",
    "PROMETHEUS_TOKEN": "the bearer token for it",
    "PROMETHEUS_TOKEN_FILE": "a file that holds it",
    "CACHE_DIR": "where the bare mirror of the repository is kept, for its owner alone; safe to delete",
    "POLL_INTERVAL": "how often to ask the remote for changes",
    "LISTEN": "host:port for the API, observations, webhooks and health; nothing listens without it",
    "STRICT_EGS_API": "true refuses what EGS's API refuses: to delete a placement that runs or has ended",
    "TLS_CERT_FILE": "a certificate with its chain, to listen with https and with nothing else",
    "TLS_KEY_FILE": "the key of it",
    "API_TOKENS": "who may what, as YAML",
    "API_TOKENS_FILE": "a file that says so, read again when it changes",
    "API_RATE": "how often each caller may call",
    "OIDC_ISSUER": "the OpenID Connect issuer whose tokens are taken as well",
    "OIDC_AUDIENCE": "whom they have to be made for",
    "OIDC_NAME_CLAIM": "the claim that somebody is called by",
    "OIDC_GROUPS_CLAIM": "the claim that lists somebody's groups",
    "OIDC_CA_FILE": "the authorities that vouch for the issuer, where the system's do not",
    "PUSH_TOKEN": "the bearer token for pushing observations",
    "PUSH_TOKEN_FILE": "a file that holds it",
    "WEBHOOK_SECRET": "the secret that webhooks are signed with",
    "WEBHOOK_SECRET_FILE": "a file that holds it",
    "NOTIFY": "the engines to tell of each push, as argocd=URL or flux=URL; several with blanks between",
    "NOTIFY_SECRET": "the secret that this is signed with",
    "NOTIFY_SECRET_FILE": "a file that holds it",
    "NOTIFY_SECRET_ARGOCD": "that for Argo CD, where it is another",
    "NOTIFY_SECRET_ARGOCD_FILE": "a file that holds it",
    "NOTIFY_SECRET_FLUX": "that for Flux, where it is another",
    "NOTIFY_SECRET_FLUX_FILE": "a file that holds it",
    "GIT_USERNAME": "the user name for an https remote",
    "GIT_PASSWORD": "the password or access token for an https remote",
    "GIT_PASSWORD_FILE": "a file that holds it",
    "SSH_KEY": "a private key file for an ssh remote",
    "KNOWN_HOSTS": "a known_hosts file for an ssh remote",
    "COMMITTER_NAME": "the name that commits are made under",
    "COMMITTER_EMAIL": "the address that tells our commits from people's; keep it",
    "LOG_FORMAT": "text or json",
    "SERVER": "a daemon's address, for commands that ask it instead of the repository",
    "TOKEN": "the bearer token for it",
    "TOKEN_FILE": "a file that holds it",
    "SERVER_CA_FILE": "the authorities that vouch for it, where the system's do not",
}
"""Every variable without its prefix, and what it is for."""

# Kubernetes sets these in every pod beside a Service named overspill (OVERSPILL_PORT=tcp://...); they are not for us.
_SERVICE_LINK = re.compile(r"OVERSPILL_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to run. A flag of the command line that says otherwise replaces a field.

    None and "" mean that nothing was said. `warnings` are worth showing and no reason to stop.
    """

    repo: str = field(default="", repr=False)  # it may carry a password
    source_branch: str = "main"
    output_branch: str = "placements"
    observations: Path | None = None
    kubeconfig: Path | None = None
    login_plugins: frozenset[str] = frozenset()
    prometheus: str = ""
    prometheus_interval: timedelta = timedelta(seconds=15)
    prometheus_token: str = field(default="", repr=False)
    in_cluster: bool = False  # we are a pod of a cluster, and may be asked to watch it
    cache_dir: Path
    poll_interval: timedelta = timedelta(seconds=30)
    listen: Listen | None = None
    strict_egs_api: bool = False
    certificate: tuple[Path, Path] | None = None  # and its key
    api_tokens: str = field(default="", repr=False)
    api_tokens_file: Path | None = None
    api_rate: Rate | None = None
    issuer: Issuer | None = None
    issuer_authorities: Path | None = None
    push_token: str = field(default="", repr=False)
    webhook_secret: str = field(default="", repr=False)
    notify: tuple[Endpoint, ...] = ()
    git_username: str = "git"  # hosts that take a token take it with any name
    git_password: str = field(default="", repr=False)
    ssh_key: Path | None = None
    known_hosts: Path | None = None
    committer_name: str = "Overspill"
    committer_email: str = "overspill@overspill.dev"
    log_format: Literal["text", "json"] = "text"
    colour: bool = True
    warnings: tuple[Problem, ...] = ()


def from_environment(env: Mapping[str, str]) -> Settings:
    """Read the settings.

    An empty variable counts as unset. Raises InvalidInput with every variable that is wrong, each with a valid example.
    """
    reader = Reader({name: value for name, value in env.items() if value})
    settings = Settings(
        repo=reader.text("REPO", ""),
        source_branch=reader.branch("SOURCE_BRANCH", "main"),
        output_branch=reader.branch("OUTPUT_BRANCH", "placements"),
        observations=reader.path("OBSERVATIONS"),
        kubeconfig=reader.path("KUBECONFIG"),
        login_plugins=reader.programs("LOGIN_PLUGINS"),
        prometheus=reader.address("PROMETHEUS"),
        prometheus_interval=reader.duration("PROMETHEUS_INTERVAL", timedelta(seconds=15)),
        prometheus_token=reader.secret("PROMETHEUS_TOKEN"),
        in_cluster=bool(env.get("KUBERNETES_SERVICE_HOST")),
        cache_dir=reader.path("CACHE_DIR") or _default_cache(env),
        poll_interval=reader.duration("POLL_INTERVAL", timedelta(seconds=30)),
        listen=reader.listen("LISTEN"),
        strict_egs_api=reader.flag("STRICT_EGS_API"),
        certificate=reader.pair("TLS_CERT_FILE", "TLS_KEY_FILE"),
        api_tokens=reader.env.get(f"{PREFIX}API_TOKENS", ""),
        api_tokens_file=reader.path("API_TOKENS_FILE"),
        api_rate=reader.rate("API_RATE"),
        issuer=reader.issuer("OIDC"),
        issuer_authorities=reader.path("OIDC_CA_FILE"),
        push_token=reader.strong_secret("PUSH_TOKEN"),
        webhook_secret=reader.strong_secret("WEBHOOK_SECRET"),
        notify=reader.endpoints("NOTIFY"),
        git_username=reader.text("GIT_USERNAME", "git"),
        git_password=reader.secret("GIT_PASSWORD"),
        ssh_key=reader.path("SSH_KEY"),
        known_hosts=reader.path("KNOWN_HOSTS"),
        committer_name=reader.text("COMMITTER_NAME", "Overspill"),
        committer_email=reader.email("COMMITTER_EMAIL", "overspill@overspill.dev"),
        log_format=reader.log_format("LOG_FORMAT"),
        colour="NO_COLOR" not in reader.env,
        warnings=_unknown(reader.env),
    )
    if settings.source_branch == settings.output_branch:
        reader.refuse("OUTPUT_BRANCH", "is the source branch as well", "placements")
    if settings.api_tokens and settings.api_tokens_file:
        reader.refuse("API_TOKENS_FILE", f"is set, and so is {PREFIX}API_TOKENS", "setting only one of them")
    if re.search(r"[^!-~]", settings.prometheus_token):
        reader.refuse("PROMETHEUS_TOKEN", "holds what cannot stand in a header", "the token and nothing else")
    if reader.problems:
        raise InvalidInput(problems=tuple(reader.problems))
    return settings


def _default_cache(env: Mapping[str, str]) -> Path:
    """Follow the XDG rules: ``$XDG_CACHE_HOME/overspill``, else ``~/.cache/overspill``.

    Without a home it is a new directory for this process alone: a name that others can guess may be theirs already.
    """
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"]) / "overspill"
    if env.get("HOME"):
        return Path(env["HOME"]) / ".cache" / "overspill"
    made = tempfile.mkdtemp(prefix="overspill-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def _unknown(env: Mapping[str, str]) -> tuple[Problem, ...]:
    """Name variables of ours that mean nothing, and what they may have been meant for."""
    problems = []
    for name in sorted(env):
        known = name.removeprefix(PREFIX)
        if not name.startswith(PREFIX) or known in VARIABLES or _SERVICE_LINK.fullmatch(name):
            continue
        near = difflib.get_close_matches(known, VARIABLES, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "`overspill run --help` lists them"
        problems.append(Problem(path=name, message="is no setting of Overspill", hint=hint, severity=Severity.WARNING))
    return tuple(problems)
