"""`grant`: the daemon's account in clusters, its rights, and its logins in a kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kube.apply import AccountToken, apply_objects, request_token, stored_token
from reconciler.adapters.kube.kubeconfig import BrokenKubeconfig, Kubeconfig, read_kubeconfig
from reconciler.adapters.kubeconfig_files import existing_kubeconfig
from reconciler.adapters.kubeconfig_logins import TokenLogin, add_logins, foreign_contexts, refuse_unwritable
from reconciler.cli import printing
from reconciler.cli.actions.files import read_directory
from reconciler.cli.actions.setup.object_table import confirm, managers, refuse_conflicts, refuse_refused, show_changes
from reconciler.cli.kubeconfig import usual_kubeconfig
from reconciler.core.engines.object_changes import ApplyAction, ObjectChange
from reconciler.core.readiness.account_objects import TOKEN_SECRET, account_objects, event_rights, token_secret
from reconciler.core.readiness.check import AskedServer
from reconciler.core.readiness.needed_rights import DAEMON, fleet_servers
from reconciler.errors import InvalidInput, Severity
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired
from reconciler.model.units import format_duration
from reconciler.model.workload import Json
from reconciler.text.spelling import nearest
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count, join_names

_MANAGER = "overspill-grant"
"""The field manager of what is applied."""
_ROUNDING = timedelta(minutes=1)
"""By so much less than was asked for a token may last without a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOut:
    """The kubeconfig that logins are added to."""

    path: Path
    lasts: timedelta | None
    """The lifetime of a token; None for a token without an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The clusters in which rights are granted."""

    fleet: Path
    contexts: tuple[str, ...]
    cluster: str | None
    """The Cluster that the only context leads to, where it has another name."""
    login: LoginOut | None
    events: bool = False
    """Whether the daemon may write Kubernetes Events as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """An API server of the fleet, as the administrator's context leads to it."""

    context: str
    servers: tuple[AskedServer, ...]
    """A cluster, a control plane, or both."""
    login: str
    """The context under which the daemon looks for it; empty where it needs none."""
    objects: tuple[Json, ...]
    changes: tuple[ObjectChange, ...]

    @property
    def work(self) -> tuple[Json, ...]:
        """The objects that are to be applied."""
        pairs = zip(self.objects, self.changes, strict=True)
        return tuple(wanted for wanted, change in pairs if change.action is not ApplyAction.KEEP)


def grant(wanted: Grant, kubeconfig: Path | None, *, dry_run: bool, yes: bool, force_conflicts: bool) -> None:
    """Show what would change in the clusters, and apply it once that is confirmed; then make the logins."""
    admin = existing_kubeconfig(kubeconfig or usual_kubeconfig())
    desired = _fleet(wanted.fleet)
    config = _config(admin, wanted.contexts)
    places = [_place(admin, desired, context, wanted) for context in wanted.contexts]
    if wanted.login is not None and any(place.login for place in places):
        refuse_unwritable(wanted.login.path)
        _refuse_foreign(wanted.login.path, places)
    _show(places, wanted.login)
    changes = [change for place in places for change in place.changes]
    refuse_refused(changes)
    login = wanted.login
    logins = [place for place in places if place.login] if login is not None else []
    work = sum(len(place.work) for place in places)
    if not work and not logins:
        printing.sentence(f"Nothing to apply: {_contexts(places)} all objects as they are.")
        return
    if dry_run:
        return
    if yes and not force_conflicts:
        refuse_conflicts(changes)
    if not yes:
        confirm(_question(places, work, logins, login, managers(changes)))
    for place in places:
        _apply(admin, place)
    if login is not None and logins:
        for place in logins:
            _log_in(admin, config, place, login)
        printing.say(f"Next: `overspill doctor --kubeconfig {login.path}`.")


def _fleet(directory: Path) -> Desired:
    """Read the fleet. Raises InvalidInput where a file is broken: the rights that it needs would be missing."""
    files = read_directory(directory)
    desired = files.desired()
    errors = tuple(problem for problem in (*files.unreadable, *desired.problems) if problem.severity is Severity.ERROR)
    if errors:
        raise InvalidInput(problems=errors)
    if not desired.clusters:
        raise InvalidInput(f"{directory} has no Cluster (name the directory of the fleet repository with --fleet)")
    return desired


def _config(admin: Path, contexts: Sequence[str]) -> Kubeconfig:
    """Read the administrator's kubeconfig. Raises InvalidInput for a context that cannot be used."""
    try:
        config = read_kubeconfig(admin)
        for context in contexts:
            config.login(context)
    except (OSError, BrokenKubeconfig) as error:
        cause = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InvalidInput(f"reading the kubeconfig: {admin}: {cause}") from error
    return config


def _place(admin: Path, desired: Desired, context: str, wanted: Grant) -> _Place:
    """Find what a context leads to, and compare what is needed there with what is there."""
    servers = tuple(_servers(desired, context, wanted.cluster))
    if not servers:
        names = sorted({server.context for server in fleet_servers(desired) if server.context})
        raise InvalidInput(
            f"--context {context}: no Cluster of the fleet is reached by this name ({nearest(context, names)};"
            " or say --cluster NAME)"
        )
    logs_in = wanted.login is not None and not any(_needs_no_login(server) for server in servers)
    objects = account_objects(desired, servers)
    if wanted.events and any(server.cluster is not None for server in servers):
        objects = (*objects, *event_rights())
    if logs_in and wanted.login is not None and wanted.login.lasts is None:
        objects = (*objects, token_secret())
    changes = apply_objects(admin, context, objects, manager=_MANAGER, dry_run=True)
    login = servers[0].context if logs_in else ""
    return _Place(context=context, servers=servers, login=login, objects=objects, changes=changes)


def _servers(desired: Desired, context: str, cluster: str | None) -> Iterator[AskedServer]:
    """Yield the cluster of a context, and the control planes that run there."""
    every = fleet_servers(desired)
    if cluster is not None and ClusterName(cluster) not in desired.clusters:
        raise InvalidInput(f"--cluster: there is no Cluster {cluster} ({nearest(cluster, desired.clusters)})")
    partition = None if cluster is None else desired.clusters[ClusterName(cluster)].slurm
    if partition is not None:
        raise InvalidInput(f"--cluster: {cluster} is partition {partition.name} of Slurm, which needs no rights")
    own = next((server for server in every if cluster is not None and server.cluster == cluster), None)
    for server in every:
        if own is None:
            here = bool(server.context) and server.context == context and not _by_argocd(server)
        else:
            here = server == own or (server.engine is not None and server.connection == own.connection)
            here = here or (bool(own.context) and server.engine is not None and server.context == own.context)
        if here:
            yield server


def _by_argocd(server: AskedServer) -> bool:
    """Return whether the daemon logs in there as Argo CD does, whose rights are not ours to grant."""
    return server.connection is not None and bool(server.connection.argocd)


def _needs_no_login(server: AskedServer) -> bool:
    """Return whether the daemon has a login there without a kubeconfig: it runs there, or uses that of Argo CD."""
    return server.connection is not None and (server.connection.in_cluster or bool(server.connection.argocd))


def _refuse_foreign(path: Path, places: Sequence[_Place]) -> None:
    """Raise InvalidInput where a login of somebody else would be replaced, as that of the administrator."""
    foreign = foreign_contexts(path, (place.login for place in places if place.login))
    if foreign:
        raise InvalidInput(
            f"{path} has {'contexts' if len(foreign) > 1 else 'a context'} {join_names(foreign)} with another login"
            " (try another --kubeconfig-out: the daemon's kubeconfig is its own)"
        )


def _show(places: Sequence[_Place], login: LoginOut | None) -> None:
    """Print what would change, cluster by cluster."""
    for number, place in enumerate(places):
        titles = [title for server in place.servers if (title := server.title) != place.context]
        printing.heading(f"{place.context}{f' ({join_names(titles)})' if titles else ''}", first=number == 0)
        show_changes(place.changes)
        if login is not None and place.login:
            lasts = "without an end" if login.lasts is None else f"for {format_duration(login.lasts)}"
            printing.sentence(f"Token {lasts}, as context {place.login} of {login.path}.")
        elif login is not None:
            printing.sentence("No token: the daemon logs in there without a kubeconfig.")
    printing.write()


def _question(
    places: Sequence[_Place], work: int, logins: Sequence[_Place], login: LoginOut | None, taken: Sequence[str]
) -> str:
    parts = [f"apply {count(work, 'object')}"] if work else []
    parts += [f"take what was set by {join_names(taken)}"] if taken else []
    parts += [f"write {count(len(logins), 'login')} to {login.path}"] if logins and login is not None else []
    question = f"{join_names(parts)} in {'context' if len(places) == 1 else 'contexts'} " if work else join_names(parts)
    names = join_names([place.context for place in places]) if work else ""
    return f"{question[:1].upper()}{question[1:]}{names}?"


def _contexts(places: Sequence[_Place]) -> str:
    names = join_names([place.context for place in places])
    return f"context {names} has" if len(places) == 1 else f"contexts {names} have"


def _apply(admin: Path, place: _Place) -> None:
    """Apply what differs. Raises InvalidInput with what the server does not take after all."""
    if place.work:
        force = bool(managers(place.changes))
        done = apply_objects(admin, place.context, place.work, manager=_MANAGER, dry_run=False, force=force)
        taken = [change for change in done if change.action is not ApplyAction.REFUSED]
        printing.sentence(f"Applied {count(len(taken), 'object')} in context {place.context}.")
        refuse_refused(done)


def _log_in(admin: Path, config: Kubeconfig, place: _Place, login: LoginOut) -> None:
    """Have a token made, and add it to the daemon's kubeconfig."""
    asked = SystemClock().now()
    token: AccountToken
    if login.lasts is None:
        token = stored_token(admin, place.context, DAEMON.namespace, TOKEN_SECRET)
    else:
        token = request_token(admin, place.context, DAEMON, login.lasts)
    entry = TokenLogin(context=place.login, server=config.server(place.context), token=token.token)
    add_logins(login.path, [entry])
    if token.expires_at is None:
        kubectl = f"kubectl --context {place.context} -n {DAEMON.namespace} delete secret {TOKEN_SECRET}"
        printing.sentence(f"Context {place.login} of {login.path}: its token has no end until `{kubectl}`.")
        return
    printing.sentence(f"Context {place.login} of {login.path}: its token ends at {format_time(token.expires_at)}.")
    if login.lasts is not None and token.expires_at < asked + login.lasts - _ROUNDING:
        allowed = format_duration(timedelta(minutes=round((token.expires_at - asked) / timedelta(minutes=1))))
        again = "run `overspill grant` again before that, or try --no-expiry"
        printing.warn(f"{place.context} lets a token last for {allowed} at most: {again}")
