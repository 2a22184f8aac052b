"""`once`, `run` and `sweep`: passes that commit without a person's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.settings import Settings


@options.examples(
    "overspill once --observations observations/",
    "overspill once --repo git@git.example.com:ml/fleet.git -o json",
)
@click.command()
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM", "NOTIFY")
@options.forms(names=options.CHANGED)
def once(settings: Settings, form: options.Output) -> None:
    """Run one pass: observe, decide, commit and push.

    If the branch moves meanwhile, the pass runs again on the new tip. A single pass has not watched the demand before:
    no burst is reverted before it expires, unless the observations have `deficitSince`. `run` watches.

    With --notify engines are told of the push. An engine that does not answer within five seconds is a warning.

    Exits with 1 when a file or an observation is broken; everything else has been done all the same.
    """
    from reconciler.cli.actions import once as action

    action.once(settings, form)


@options.examples(
    "overspill run --kubeconfig clusters.kubeconfig",
    "overspill run --observations observations/",
    "overspill run --kubeconfig clusters.kubeconfig --prometheus http://prometheus.monitoring:9090",
    "overspill run --repo https://git.example.com/ml/fleet.git --listen :8080 --log-format json",
    "overspill run --observations observations/ --record passes/",
    "OVERSPILL_PUSH_TOKEN_FILE=/run/secrets/push overspill run --listen :8080 --poll-interval 1m",
)
@click.command()
@options.connected(
    "OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM", "POLL_INTERVAL", "LISTEN", "STRICT_EGS_API", "NOTIFY",
    "NOTIFICATION_SECRETS", "RECORD", "RECORD_MAX_SIZE", "RECORD_MAX_AGE", "LOG_FORMAT",
)  # fmt: skip # one list
def run(settings: Settings) -> None:
    """Run the daemon: watch, and commit each change.

    The daemon watches the repository, the clusters and the observations, and logs one line for each change. SIGTERM
    and Ctrl-C finish the push under way and exit; SIGHUP starts a pass at once. With --listen the daemon takes
    observations (POST /api/v1/observations) and push hints of GitHub, GitLab and Gitea, and answers /healthz and
    /readyz. With --prometheus it runs the queries of the policies' signals, and with --notify it tells engines of each
    push, so that they need not poll. Receivers of Notifications are told of events, with the secrets in the directory
    of --notification-secrets. With --record it keeps what each pass saw and decided, for `overspill lab replay`: as
    much as --record-max-size says, 1Gi by default, and no longer than --record-max-age, 7d. Tokens and secrets come
    from the environment or from files only.
    """
    options.refuse_windows("run")
    from reconciler.app.daemon import serve

    serve(settings)


@options.examples(
    "overspill sweep --repo https://git.example.com/ml/fleet.git",
    "*/10 * * * *  overspill sweep --repo /srv/git/fleet.git",
)
@click.command()
@options.connected()
@options.dry_run
@options.forms(names=options.CHANGED)
def sweep(settings: Settings, *, dry_run: bool, form: options.Output) -> None:
    """Revert expired placements, and nothing else.

    A sweep needs the output branch only: no observations, no clusters, not even readable files on the source branch.
    Run it in any CI on a schedule, so that bursts end even when the daemon is gone.
    """
    from reconciler.cli.actions import steer as action

    action.sweep(settings, dry_run=dry_run, form=form)
