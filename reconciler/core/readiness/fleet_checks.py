"""The checks of a fleet, by the API server whose answers they need."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from reconciler.core.engines import ENGINES
from reconciler.core.engines.engine import Bootstrap, ControlPlane, Engine
from reconciler.core.engines.permissions import deployed, made_namespaces, spec_namespaces
from reconciler.core.engines.reports import EngineResource
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.fleet.cluster_order import ordered_candidates
from reconciler.core.fleet.sources.patches import PatchedTemplates
from reconciler.core.observe.kubernetes.resources import plural_of
from reconciler.core.readiness.check import AskedServer, Check, SettledCheck, missing
from reconciler.core.readiness.cluster_logins import KnownCluster
from reconciler.core.readiness.engine_objects import AppliedObjects, ServedKinds
from reconciler.core.readiness.engine_version import EngineVersion
from reconciler.core.readiness.namespaces import TargetNamespace
from reconciler.core.readiness.needed_rights import fleet_servers, watch_rights
from reconciler.core.readiness.node_pools import DeclaredNodePool
from reconciler.core.readiness.prerequisites import NeededObject, is_asked
from reconciler.core.readiness.question import ServiceAccountName
from reconciler.core.readiness.read_rights import ReadRights
from reconciler.core.readiness.server import ClockCheck, VersionCheck
from reconciler.core.readiness.template_versions import TemplateVersions
from reconciler.core.schema import yaml
from reconciler.core.workloads.api_kinds import KUBERNETES_GROUPS, group_kind
from reconciler.errors import InvalidInput
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Cluster, Desired, EngineName
from reconciler.model.workload import Json

_NAMESPACE = "/Namespace"


def server_checks(
    desired: Desired, *, output_branch: str, begun: bool, account: ServiceAccountName | None = None
) -> Mapping[AskedServer, tuple[Check, ...]]:
    """List the checks of each cluster, and then of each control plane whose engine deploys anything.

    `begun` says whether the output branch is there, `account` whose rights are looked at: without one the login's.
    """
    fleet = _FleetChecks(desired, output_branch=output_branch, begun=begun, account=account)
    servers: dict[AskedServer, tuple[Check, ...]] = {}
    for server in fleet_servers(desired):
        if server.cluster is not None:
            servers[server] = tuple(fleet.cluster_checks(server.cluster))
        elif server.engine is not None:
            plane = ENGINES[server.engine].control_plane(desired.fleet)
            servers[server] = () if plane is None else tuple(fleet.plane_checks(server.engine, plane, server))
    return servers


class _FleetChecks:
    """The checks of one fleet."""

    def __init__(
        self, desired: Desired, *, output_branch: str, begun: bool, account: ServiceAccountName | None
    ) -> None:
        self._desired = desired
        self._branch = output_branch
        self._begun = begun
        self._account = account
        self._destinations = frozenset(
            name for workspace in desired.workspaces.values() for name in workspace.destinations
        )
        self.servers = {server.cluster: server for server in fleet_servers(desired) if server.cluster is not None}

    def cluster_checks(self, name: ClusterName) -> Iterator[Check]:
        """List what the daemon needs to see of a cluster, and what placements need to run there."""
        cluster, server = self._desired.clusters[name], self.servers[name]
        engine = ENGINES[cluster.engine]
        yield VersionCheck()
        yield ClockCheck(server=server)
        yield from self._read_rights(server)
        yield from (DeclaredNodePool(server=server, nodes=nodes) for nodes in cluster.autoscaling if nodes.node_pool)
        reports = engine.cluster_reports(self._desired.fleet, name)
        parts = reports.objects().parts if reports is not None else {}
        if name in self._destinations:
            if engine.bootstrap is not None and engine.bootstrap.per_cluster:
                yield from self._engine_checks(engine, engine.bootstrap, server, parts)
            yield from self._namespaces(cluster, engine, server)
        yield from self._prerequisites(name, server)

    def plane_checks(self, name: EngineName, plane: ControlPlane, server: AskedServer) -> Iterator[Check]:
        """List what the daemon needs to see of a control plane, and what the engine needs to deploy from there."""
        engine = ENGINES[name]
        desired = self._desired
        clusters = [other for other, cluster in sorted(desired.clusters.items()) if cluster.engine is name]
        reached = [other for other in clusters if other in self._destinations]
        yield VersionCheck()
        yield ClockCheck(server=server)
        parts = plane.reports.objects().parts
        yield from self._read_rights(server)
        if engine.bootstrap is not None and not engine.bootstrap.per_cluster and reached:
            yield from self._engine_checks(engine, engine.bootstrap, server, parts)
        if plane.logins is None:
            return
        for other in reached:
            context = self.servers[other].context
            local = ["--in-cluster"] if context == server.context else []
            yield KnownCluster(
                title=engine.title,
                cluster=other,
                source=plane.logins,
                register=shlex.join(["argocd", "cluster", "add", context, "--name", other, *local]),
                look=shlex.join(["argocd", "cluster", "get", other]),
            )

    def _read_rights(self, server: AskedServer) -> Iterator[Check]:
        """List the rights to read what is watched, file by file."""
        for needed in watch_rights(self._desired, server):
            yield ReadRights(server=server, needed=needed, account=self._account)

    def _printed(self, bootstrap: Bootstrap, cluster: ClusterName | None) -> tuple[Json, ...]:
        """Return the objects that `overspill bootstrap` prints. Raises InvalidInput where it prints none."""
        text = bootstrap.text(self._desired, cluster, output_branch=self._branch)
        return tuple(document.value for document in yaml.parse(text.encode(), "bootstrap"))

    def _engine_checks(
        self, engine: Engine, bootstrap: Bootstrap, server: AskedServer, reports: Iterable[EngineResource]
    ) -> Iterator[Check]:
        """List the checks of an engine's kinds, `reports` among them, and of what is printed for it."""
        cluster = server.cluster
        words = ["overspill", "bootstrap", str(engine.name), *(["--cluster", str(cluster)] if cluster else [])]
        try:
            own, usual = _by_origin(self._printed(bootstrap, cluster))
        except InvalidInput as error:
            if self._desired.fleet.repo_url:  # else it is told beside the files of the fleet
                yield SettledCheck(outcome=missing(f"objects for {engine.title}", str(error), shlex.join(words)))
            return
        apply = f"{shlex.join(words)} | {server.kubectl('apply', '-f', '-')}"
        yield ServedKinds(
            title=engine.title,
            kinds=_kinds(own, reports),
            install=bootstrap.install(self._desired.fleet, context=server.context),
        )
        if engine.installation is not None:
            yield EngineVersion(
                server=server,
                title=engine.title,
                installation=engine.installation,
                install=bootstrap.install(self._desired.fleet, context=server.context),
            )
        named = {f"{wanted['kind']} {wanted['metadata']['name']}": (wanted,) for wanted in own}
        if usual:
            named = {"accounts, rights and namespaces": usual, **named}
        for subject, wanted_objects in named.items():
            yield AppliedObjects(
                server=server,
                subject=subject,
                objects=wanted_objects,
                apply=apply,
                conditions=bootstrap.conditions,
                secrets=bootstrap.secrets,
                begun=self._begun,
            )

    def _namespaces(self, cluster: Cluster, engine: Engine, server: AskedServer) -> Iterator[Check]:
        """List the namespaces that placements go to in a cluster, but for those that bootstrap makes."""
        used: dict[str, list[bool]] = {}
        for workspace in self._desired.workspaces.values():
            if cluster.name in workspace.destinations:
                for spec in deployed(self._desired, workspace.name):
                    made = made_namespaces(spec)
                    for namespace in spec_namespaces(spec, workspace) - {"*"}:
                        used.setdefault(namespace, []).append(namespace in made)
        printed: set[str] = set()
        if engine.bootstrap is not None and engine.bootstrap.per_cluster:
            with suppress(InvalidInput):  # which is told where its objects are looked for
                objects = self._printed(engine.bootstrap, cluster.name)
                printed = {wanted["metadata"]["name"] for wanted in objects if group_kind(wanted) == _NAMESPACE}
        for namespace in sorted(used.keys() - printed):
            yield TargetNamespace(server=server, name=namespace, made=all(used[namespace]))

    def _prerequisites(self, name: ClusterName, server: AskedServer) -> Iterator[Check]:
        """List what the templates that may burst to a cluster refer to, each object once."""
        desired, cluster, patched = self._desired, self._desired.clusters[name], PatchedTemplates(self._desired)
        needed: dict[tuple[str, str], NeededObject] = {}
        versions: dict[str, Prerequisite] = {}
        for workload, policy in sorted(desired.policies.items()):
            workspace = desired.workspaces[workload.workspace]
            candidates = {candidate.cluster for candidate in ordered_candidates(policy, workspace, desired.clusters)}
            primary = self.servers.get(workspace.primary)
            template = desired.templates[workload]
            if name not in candidates or primary is None:
                continue
            for prerequisite in patched.prerequisites(template, cluster):
                if prerequisite.category is Category.API_VERSIONS and not has_expression(prerequisite.name):
                    by = f"{prerequisite.by} of template {workload}"
                    versions.setdefault(prerequisite.name, replace(prerequisite, by=by))
                elif is_asked(prerequisite):
                    check = NeededObject(server=server, primary=primary, prerequisite=prerequisite)
                    needed.setdefault((prerequisite.category, prerequisite.name), check)
        if versions:
            yield TemplateVersions(server=server, needed=tuple(versions[each] for each in sorted(versions)))
        yield from needed.values()


def _kinds(objects: Iterable[Json], reports: Iterable[EngineResource]) -> Mapping[str, frozenset[str]]:
    """Return the plurals of kinds by group and version: those of printed objects, and those that report."""
    kinds: dict[str, set[str]] = {}
    for wanted in objects:
        kinds.setdefault(str(wanted["apiVersion"]), set()).add(plural_of(str(wanted["kind"])))
    for resource in reports:
        kinds.setdefault(f"{resource.group}/{resource.versions[0]}", set()).add(resource.plural)
    return {version: frozenset(plurals) for version, plurals in kinds.items()}


def _by_origin(objects: Iterable[Json]) -> tuple[tuple[Json, ...], tuple[Json, ...]]:
    """Split objects into those of kinds that the engine brings, and those of Kubernetes' own kinds."""
    own: list[Json] = []
    usual: list[Json] = []
    for wanted in objects:
        (usual if group_kind(wanted).partition("/")[0] in KUBERNETES_GROUPS else own).append(wanted)
    return tuple(own), tuple(usual)
