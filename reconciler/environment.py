"""The environment variables of Overspill: their names, and the directory of the cache.

Everything here is cheap to import: the help and the completion of the command line read it on every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PREFIX = "OVERSPILL_"

VARIABLES: Mapping[str, str] = {
    "REPO": "the fleet repository: an https, ssh or file URL, or a path",
    "SOURCE_BRANCH": "the branch that people write",
    "OUTPUT_BRANCH": "the branch that Overspill writes",
    "OBSERVATIONS": "a file or directory of observations",
    "KUBECONFIG": "a kubeconfig, or several with colons between, whose contexts are clusters to watch",
    "LOGIN_PLUGINS": "programs that Argo CD's cluster Secrets may run here to log in",
    "PROMETHEUS": "the address of the Prometheus that policies' queries are put to",
    "PROMETHEUS_INTERVAL": "how often they are",
    "PROMETHEUS_CLUSTER_LABEL": "the label of its series that names a cluster, for the use of GPUs",
    "PROMETHEUS_TOKEN": "the bearer token for it",
    "PROMETHEUS_TOKEN_FILE": "a file that holds it",
    "SLURM": "the address of the slurmrestd that is asked for pending jobs",
    "SLURM_INTERVAL": "how often it is",
    "SLURM_USER": "the user of Slurm that asks",
    "SLURM_TOKEN_FILE": "a file that holds a token (JWT) for it, read anew for each question",
    "CACHE_DIR": "the directory of the bare mirror, for its owner alone; safe to delete while no branch is lost",
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
    "OIDC_CLIENT_ID": "our name at the issuer as a client, with which people log in to the page",
    "OIDC_CLIENT_SECRET": "the secret of this client, where it has one",
    "OIDC_CLIENT_SECRET_FILE": "a file that holds it",
    "PAGE_URL": "where browsers reach the page, if a proxy stands before it: https://overspill.example.com",
    "PAGE_SECRET": "the secret that sessions of the page are sealed with; without one a restart signs everybody out",
    "PAGE_SECRET_FILE": "a file that holds it",
    "PAGE_SESSION": "how long somebody stays signed in to the page",
    "LAB_REPORTS": "a directory of reports that `overspill lab run --html` writes, for the page to show",
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
    "NOTIFICATION_SECRETS": "a directory with the secrets of Notifications, a file each",
    "GIT_USERNAME": "the user name for an https remote; this and what follows is for the repository of REPO alone",
    "GIT_PASSWORD": "the password or access token for an https remote",
    "GIT_PASSWORD_FILE": "a file that holds it, read anew for each call",
    "SSH_KEY": "a private key file for an ssh remote",
    "KNOWN_HOSTS": "a known_hosts file for an ssh remote",
    "SOURCE_LOGINS_FILE": "logins for the Fleet's sourceRepositories, https://USER:TOKEN@HOST/PATH on a line each",
    "SOURCE_SSH_KEY": "a private key file for those of them that are reached by ssh",
    "SIGNING_KEY_FILE": "a private key, of ssh or OpenPGP, that commits are signed with; read anew for each push",
    "SIGNING_PASSPHRASE_FILE": "a file that holds its passphrase",
    "ALLOWED_SIGNERS_FILE": "who has to have signed the source branch, as ssh-keygen's allowed_signers",
    "ALLOWED_OPENPGP_KEYS_FILE": "the same as OpenPGP public keys",
    "COMMIT_TRAILERS": "lines for the end of each commit message, such as Signed-off-by: NAME <ADDRESS>",
    "COMMITTER_NAME": "the name that commits are made under",
    "COMMITTER_EMAIL": "the address that tells our commits from people's",
    "COMMITTER_FORMER_EMAILS": "the addresses that it had before, with blanks between, so that earlier commits count",
    "RECORD": "a directory in which every pass is recorded, for `overspill lab replay`; nothing is recorded without it",
    "RECORD_MAX_SIZE": "how much it may hold",
    "RECORD_MAX_AGE": "how long passes are kept in it",
    "TRACES": "the OpenTelemetry collector that spans are sent to, over HTTP",
    "LOG_FORMAT": "text or json",
    "SERVER": "a daemon's address, for commands that ask it instead of the repository",
    "TOKEN": "the bearer token for it",
    "TOKEN_FILE": "a file that holds it",
    "SERVER_CA_FILE": "the authorities that vouch for it, where the system's do not",
}
"""Every variable without its prefix, and its purpose."""


def cache_directory(env: Mapping[str, str]) -> Path | None:
    """Follow the XDG rules: ``$XDG_CACHE_HOME/overspill``, else ``~/.cache/overspill``; None without a home."""
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"]) / "overspill"
    if env.get("HOME"):
        return Path(env["HOME"]) / ".cache" / "overspill"
    return None
