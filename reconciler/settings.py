"""The settings of a process, read from the environment variables that `environment` lists."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from reconciler.access.oidc import Issuer, is_safe_address
from reconciler.access.rate_limit import Rate
from reconciler.environment import PREFIX, VARIABLES, cache_directory
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.events.event import Endpoint
from reconciler.text.spelling import closest
from reconciler.variables import Listen, Reader

# Kubernetes sets these in every pod beside a Service named overspill (OVERSPILL_PORT=tcp://...); they are not for us.
_SERVICE_LINK = re.compile(
    r"OVERSPILL_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)", re.ASCII
)

_PRIVATE = "an https:// address, or http:// to this machine, as to the end of a tunnel at http://127.0.0.1:6820"


_COMMITTER = "overspill@overspill.dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a process. Flags of the command line replace fields; None and "" stand for unset variables."""

    repo: str = field(default="", repr=False)  # it may carry a password
    repo_is_origin: bool = False  # no setting named it: no login of the settings is for it
    source_branch: str = "main"
    output_branch: str = "placements"
    observations: Path | None = None
    kubeconfig: Path | None = None
    login_plugins: frozenset[str] = frozenset()
    prometheus: str = ""
    prometheus_interval: timedelta = timedelta(seconds=15)
    prometheus_cluster_label: str = "cluster"
    prometheus_token: str = field(default="", repr=False)
    slurm: str = ""
    slurm_interval: timedelta = timedelta(seconds=15)
    slurm_user: str = ""
    slurm_token_file: Path | None = None
    """Read again for each question."""
    in_cluster: bool = False  # this process is a pod, and can watch its own cluster
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
    issuer_client: str = ""
    issuer_client_secret: str = field(default="", repr=False)
    page_url: str = ""
    page_secret: str = field(default="", repr=False)
    page_session: timedelta = timedelta(hours=8)
    lab_reports: Path | None = None
    push_token: str = field(default="", repr=False)
    webhook_secret: str = field(default="", repr=False)
    notify: tuple[Endpoint, ...] = ()
    notification_secrets: Path | None = None
    """Read again for each delivery."""
    git_username: str = "git"  # hosts that take a token take it with any name
    git_password: str = field(default="", repr=False)
    git_password_file: Path | None = None
    """Read again for each call of git."""
    ssh_key: Path | None = None
    known_hosts: Path | None = None
    source_logins_file: Path | None = None
    """Read again for each call of git."""
    source_ssh_key: Path | None = None
    signing_key: Path | None = None
    """Read again for each batch of commits, as its passphrase is."""
    signing_passphrase: Path | None = None
    allowed_signers: Path | None = None
    allowed_openpgp_keys: Path | None = None
    commit_trailers: tuple[str, ...] = ()
    committer_name: str = "Overspill"
    committer_email: str = _COMMITTER
    committer_former_emails: frozenset[str] = frozenset({_COMMITTER})
    traces: str = ""  # the address of a collector
    record: Path | None = None
    record_max_size: int = 1 << 30  # bytes
    record_max_age: timedelta = timedelta(days=7)
    log_format: Literal["text", "json"] = "text"
    colour: bool = True
    warnings: tuple[Problem, ...] = ()  # unknown variables; no reason to stop


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
        traces=reader.address("TRACES"),
        prometheus_interval=reader.duration("PROMETHEUS_INTERVAL", timedelta(seconds=15)),
        prometheus_cluster_label=reader.label("PROMETHEUS_CLUSTER_LABEL", "cluster"),
        prometheus_token=reader.secret("PROMETHEUS_TOKEN"),
        slurm=reader.address("SLURM", token=False),
        slurm_interval=reader.duration("SLURM_INTERVAL", timedelta(seconds=15)),
        slurm_user=reader.text("SLURM_USER", ""),
        slurm_token_file=reader.path("SLURM_TOKEN_FILE"),
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
        issuer_client=reader.text("OIDC_CLIENT_ID", ""),
        issuer_client_secret=reader.secret("OIDC_CLIENT_SECRET"),
        page_url=reader.address("PAGE_URL", token=False),
        page_secret=reader.strong_secret("PAGE_SECRET"),
        page_session=reader.duration("PAGE_SESSION", timedelta(hours=8)),
        lab_reports=reader.path("LAB_REPORTS"),
        push_token=reader.strong_secret("PUSH_TOKEN"),
        webhook_secret=reader.strong_secret("WEBHOOK_SECRET"),
        notify=reader.endpoints("NOTIFY"),
        notification_secrets=reader.path("NOTIFICATION_SECRETS"),
        git_username=reader.text("GIT_USERNAME", "git"),
        git_password=reader.secret("GIT_PASSWORD"),
        git_password_file=reader.path("GIT_PASSWORD_FILE"),
        ssh_key=reader.path("SSH_KEY"),
        known_hosts=reader.path("KNOWN_HOSTS"),
        source_logins_file=reader.path("SOURCE_LOGINS_FILE"),
        source_ssh_key=reader.path("SOURCE_SSH_KEY"),
        signing_key=reader.path("SIGNING_KEY_FILE"),
        signing_passphrase=reader.path("SIGNING_PASSPHRASE_FILE"),
        allowed_signers=reader.path("ALLOWED_SIGNERS_FILE"),
        allowed_openpgp_keys=reader.path("ALLOWED_OPENPGP_KEYS_FILE"),
        commit_trailers=reader.trailers("COMMIT_TRAILERS"),
        committer_name=reader.text("COMMITTER_NAME", "Overspill"),
        committer_email=reader.email("COMMITTER_EMAIL", _COMMITTER),
        committer_former_emails=frozenset({_COMMITTER, *reader.emails("COMMITTER_FORMER_EMAILS")}),
        record=reader.path("RECORD"),
        record_max_size=reader.size("RECORD_MAX_SIZE", 1 << 30),
        record_max_age=reader.duration("RECORD_MAX_AGE", timedelta(days=7)),
        log_format=reader.log_format("LOG_FORMAT"),
        colour="NO_COLOR" not in reader.env,
        warnings=_unknown_variables(reader.env),
    )
    if settings.source_branch == settings.output_branch:
        reader.refuse("OUTPUT_BRANCH", "is the source branch as well", "placements")
    if settings.issuer_client and settings.issuer is None:
        reader.refuse("OIDC_ISSUER", f"is not set, and {PREFIX}OIDC_CLIENT_ID is", "setting both")
    if settings.issuer_client_secret and not settings.issuer_client:
        reader.refuse("OIDC_CLIENT_ID", f"is not set, and {PREFIX}OIDC_CLIENT_SECRET is", "setting both")
    if settings.api_tokens and settings.api_tokens_file:
        reader.refuse("API_TOKENS_FILE", f"is set, and so is {PREFIX}API_TOKENS", "setting only one of them")
    if re.search(r"[^!-~]", settings.prometheus_token):
        reader.refuse("PROMETHEUS_TOKEN", "holds what cannot stand in a header", "the token and nothing else")
    if re.search(r"[^!-~]", settings.slurm_user):
        reader.refuse("SLURM_USER", "holds what cannot stand in a header", "a name of Slurm")
    if settings.slurm and settings.slurm_token_file and not is_safe_address(settings.slurm):
        reader.refuse("SLURM", "would be sent a token that anybody on the way can read", _PRIVATE)
    if reader.problems:
        raise InvalidInput(problems=tuple(reader.problems))
    return settings


def _default_cache(env: Mapping[str, str]) -> Path:
    """Return the user's cache directory.

    Without a home it is a new private directory: other users may own one with a predictable name.
    """
    directory = cache_directory(env)
    if directory is not None:
        return directory
    private = tempfile.mkdtemp(prefix="overspill-")
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return Path(private)


def _unknown_variables(env: Mapping[str, str]) -> tuple[Problem, ...]:
    """List unknown variables with our prefix, and the names that may have been meant."""
    problems = []
    for name in sorted(env):
        variable = name.removeprefix(PREFIX)
        if not name.startswith(PREFIX) or variable in VARIABLES or _SERVICE_LINK.fullmatch(name):
            continue
        near = closest(variable, VARIABLES)
        hint = f"did you mean {PREFIX}{near}?" if near else "`overspill run --help` lists them"
        problems.append(Problem(path=name, message="is no setting of Overspill", hint=hint, severity=Severity.WARNING))
    return tuple(problems)
