"""A live workload as files of a fleet repository: a WorkloadTemplate, and a Workspace and a policy where it has none.

Objects of its namespace come along: the ConfigMaps, claims, service accounts and resource claim templates that its pods
cannot start without, and Services that select them. Secrets are never copied: their names are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.fleet.sources.expansion import step_names, with_share
from reconciler.core.fleet.warnings.prerequisites import burst_clusters, warn_undeclared
from reconciler.core.observe.counted_object import WORKLOAD
from reconciler.core.onboarding.release_template import (
    ReleasedChart,
    chart_annotations,
    chart_notes,
    chart_spec,
)
from reconciler.core.schema import yaml
from reconciler.core.schema.egs.template import COMPANIONS
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, Kinds, kind_of, kinds_named
from reconciler.core.workloads.cluster_provides import known_lacking, undeclared
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import pod_metadata, pod_template_sites
from reconciler.core.workloads.portable_object import ADDRESSES, OF_THE_CLUSTER, portable
from reconciler.errors import InvalidInput, Problem
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.policy import Desired, Workspace
from reconciler.model.workload import (
    DeploySpec,
    Json,
    ManifestResource,
    Step,
    StepType,
    WorkloadRef,
    WorkloadTemplate,
)
from reconciler.text.spelling import nearest
from reconciler.text.wording import count, join_names

COPIED: Mapping[Category, tuple[str, str]] = {
    Category.SERVICE_ACCOUNTS: ("v1", "ServiceAccount"),
    Category.CONFIG_MAPS: ("v1", "ConfigMap"),
    Category.VOLUMES: ("v1", "PersistentVolumeClaim"),
    Category.CLAIM_TEMPLATES: ("resource.k8s.io/v1", "ResourceClaimTemplate"),
}
"""Categories of which objects are copied, in the order of the template's steps, each with its version and kind."""

_API_VERSION = "overspill.dev/v1alpha1"
_TIED = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_HELM = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")
"""Annotations by which Helm marks the objects of its releases."""
_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorkload:
    """A workload as its primary runs it."""

    primary: ClusterName
    manifest: Mapping[str, Json]
    companions: tuple[Mapping[str, Json], ...] = ()
    """Other objects of its namespace; those that it does not need are left out of the template."""
    source: str = ""
    """The file that it was read from; empty for the cluster."""
    services_unread: str = ""
    """Why the Services of its namespace are not known; empty where they are."""
    chart: ReleasedChart | None = None
    """The Helm release that it is of, where that is lent; None for a template of its objects."""

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(at(self.manifest, ("metadata", "name")) or "")

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        return str(at(self.manifest, ("metadata", "namespace")) or "default")

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of a template of it; a chart may put the object elsewhere than its release is."""
        release = () if self.chart is None else (self.chart.release.namespace,)
        return tuple(dict.fromkeys((*release, self.namespace)))

    @property
    def title(self) -> str:
        """The object in messages."""
        return f"{self.manifest.get('kind')} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LentFiles:
    """New files of a fleet repository, and what a person has to know of them."""

    workload: WorkloadId
    template: str
    """The path of the template."""
    files: Mapping[str, str]
    """Texts by path."""
    notes: tuple[str, ...] = ()
    lacking: Mapping[str, frozenset[tuple[Category, str]]] = field(default_factory=dict)
    """Notes on objects that each cluster of a burst has to have, with the category and name of each."""


def find_kind(text: str, kinds: Kinds) -> WorkloadKind:
    """Return the kind that a person names as kubectl takes it: ``deployment``, ``deploy``, ``jobs.batch``.

    A Helm release is no kind (`helm_release.is_release`).

    Raises InvalidInput for a kind that is no workload, and where several groups have it.
    """
    word, _, group = text.casefold().partition(".")
    every = {**BUILT_IN, **kinds}
    named = [kind for kind in every.values() if word in _words(kind) and group in ("", kind.group)]
    # The kinds of Kubernetes come first: a plain `job` is the one of batch.
    named = [kind for kind in named if kind.group in ("", "apps", "batch")] or named
    if len(named) == 1:
        return named[0]
    if not named:
        words = {kind.kind.casefold() for kind in every.values()}
        raise InvalidInput(f"{text!r} is no kind of workload that is known ({nearest(word, words)})")
    raise InvalidInput(
        f"several groups have the kind {text!r} (try {join_names([f'{word}.{kind.group}' for kind in named])})"
    )


def kind_and_name(workload: str, kinds: Kinds) -> tuple[WorkloadKind, str]:
    """Read ``deployment/vllm``. Raises InvalidInput for anything else."""
    text, slash, name = workload.partition("/")
    if not slash or not name or not text:
        raise InvalidInput(f"{workload!r} is not KIND/NAME (try deployment/{workload.strip('/')})")
    return find_kind(text, kinds), name


def _words(kind: WorkloadKind) -> frozenset[str]:
    name = kind.kind.casefold()
    return frozenset(word for word in (name, f"{name}s", f"{name}es", kind.plural, kind.short_name) if word)


def needed_objects(live: LiveWorkload, kinds: Kinds) -> tuple[Prerequisite, ...]:
    """List the objects that pods of a live workload cannot start without, beside its own."""
    return _needed([live.manifest], live, kinds)


def choose_workspace(desired: Desired, primary: ClusterName, namespace: str, name: str | None) -> Workspace | None:
    """Return the workspace of a primary that may use a namespace, by name if one is given; None where none may.

    Raises InvalidInput where several may, and for a name that does not exist or does not fit.
    """
    if name is not None:
        workspace = desired.workspaces.get(WorkspaceName(name))
        if workspace is None:
            return None
        if workspace.primary != primary:
            raise InvalidInput(f"the primary cluster of workspace {name} is {workspace.primary}, and not {primary}")
        if namespace not in workspace.namespaces and workspace.namespaces:
            raise InvalidInput(
                f"workspace {name} may not use the namespace {namespace} (add it to its spec.namespaces)"
            )
        return workspace
    able = [
        workspace
        for workspace in desired.workspaces.values()
        if workspace.primary == primary and (not workspace.namespaces or namespace in workspace.namespaces)
    ]
    if len(able) > 1:
        names = join_names([workspace.name for workspace in able])
        raise InvalidInput(f"several workspaces may use {namespace} on {primary}: {names} (say which with --workspace)")
    return able[0] if able else None


def template_of(desired: Desired, primary: ClusterName, ref: WorkloadRef) -> WorkloadTemplate | None:
    """Return the template that bursts for an object on a primary cluster already; None where none does."""
    counting = (desired.templates[workload] for workload in sorted(desired.policies) if workload in desired.templates)
    for template in counting:
        own = desired.workspaces[template.workspace].primary == primary
        if own and template.ref is not None and template.ref.may_be(ref):
            return template
    return None


def choose_primary(desired: Desired, name: str | None, directory: str) -> ClusterName:
    """Return the cluster whose workload is lent: by name, else the one that all workspaces live on.

    `directory` is where the fleet was read, as messages name it.

    Raises InvalidInput for a name that no Cluster has, and where the fleet leaves it open.
    """
    clusters = sorted(desired.clusters)
    if not clusters:
        raise InvalidInput(
            f"the fleet in {directory} has no Cluster yet (try --fleet DIRECTORY with another one, or `overspill init"
            " DIRECTORY` for a layout to begin with)"
        )
    primaries = {workspace.primary for workspace in desired.workspaces.values()}
    named = primaries if name is None else {ClusterName(name)}
    if len(named) != 1:
        hint = f"try --primary with one of {join_names(clusters)}"
        raise InvalidInput(f"it is open which cluster runs the workload ({hint})")
    (primary,) = named
    if primary not in desired.clusters:  # a workspace may name one as well
        raise InvalidInput(f"cluster {primary} is not in the fleet repository ({nearest(primary, clusters)})")
    return primary


def lent_files(
    live: LiveWorkload,
    desired: Desired,
    *,
    workspace: Workspace | None,
    name: str | None = None,
    workspace_name: str | None = None,
    policy: Json = None,
    reference: bool = False,
    companions: bool = False,
) -> LentFiles:
    """Write the files with which a live workload may burst; with `reference` the template holds no copy of it.

    With `companions` beside it holds none of its ConfigMaps and Services either.

    `policy` is the spec of the policy for a workload that none applies to; None where one does. `workspace_name` names
    the new workspace where `workspace` is None: by default as the namespace.
    """
    usual = live.name if live.chart is None else live.chart.release.name
    template_name = name or _NAME.sub("-", usual.casefold()).strip("-")
    own = workspace.name if workspace is not None else WorkspaceName(workspace_name or live.namespace)
    workload = WorkloadId(own, TemplateName(template_name))
    if live.chart is not None:
        template, notes, resources = _chart_template(live, live.chart, workload, desired, workspace)
    else:
        template, notes, resources = _template(
            live, workload, desired.kinds, reference=reference, companions=companions
        )
    lacking = dict(_lacking_notes(live, resources, desired.kinds))
    files = {f"templates/{template_name}.yaml": _template_text(live, template, reference=reference)}
    path = next(iter(files))
    if workspace is None:
        files[f"workspaces/{own}.yaml"] = _workspace_text(live, own, desired)
    if policy is not None:
        files[f"policies/{template_name}.yaml"] = _policy_text(live, workload, policy)
    return LentFiles(workload=workload, template=path, files=files, notes=(*notes, *lacking), lacking=lacking)


def mention_once(lent: LentFiles, after: Desired) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    """Return the problems of new files and the notes on them, so that no object that clusters may lack is in both.

    `after` is the fleet with the new files. What no cluster has is a problem, since the workload may go nowhere; what
    clusters merely do not declare is a note.
    """
    problems = tuple(problem for problem in after.problems if problem.path in lent.files)
    template, policy = after.templates.get(lent.workload), after.policies.get(lent.workload)
    if template is None or policy is None:
        return problems, lent.notes
    clusters = burst_clusters(policy, after.workspaces[template.workspace], after)
    noted = frozenset[tuple[Category, str]]().union(*lent.lacking.values())
    doubtful = [each for each in template.prerequisites if any(undeclared(cluster, [each]) for cluster in clusters)]
    if noted.issuperset((each.category, each.name) for each in doubtful):
        words = {finding.message for finding in warn_undeclared(doubtful, clusters, {})}
        problems = tuple(problem for problem in problems if problem.message not in words)
    lost = frozenset(
        (each.category, each.name)
        for each in template.prerequisites
        if clusters and all(known_lacking(cluster, [each]) for cluster in clusters)
    )
    notes = tuple(note for note in lent.notes if note not in lent.lacking or not lent.lacking[note] <= lost)
    return problems, notes


def _template(
    live: LiveWorkload, workload: WorkloadId, kinds: Kinds, *, reference: bool, companions: bool
) -> tuple[Json, list[str], Sequence[Mapping[str, Json]]]:
    """Return the document of a template, what a person has to know of it, and the objects that it deploys."""
    copied = _copied(live, kinds)
    services = [portable(manifest) for manifest in live.companions if _serves(manifest, live.manifest, kinds)]
    manifest = with_share(portable(live.manifest), kinds)
    resources = [*copied, manifest, *services]
    followed = [each for each in resources if companions and each["kind"] in COMPANIONS.values()]
    written = [each for each in resources if not (reference and each is manifest) and each not in followed]
    names = step_names(written)
    objects = _written_objects(names, written) if written else {}
    document = _document(live, workload, kinds, {**(_reference(live, followed) if reference else {}), **objects})
    notes = [*_notes(live, resources, kinds)]
    if followed:
        titles = join_names(f"{each['kind']} {at(each, ('metadata', 'name'))}" for each in followed)
        notes.append(f"{titles}: read live, by rights to these names that `overspill grant` gives the daemon")
    return document, notes, resources


def _chart_template(
    live: LiveWorkload, chart: ReleasedChart, workload: WorkloadId, desired: Desired, workspace: Workspace | None
) -> tuple[Json, list[str], Sequence[Mapping[str, Json]]]:
    """Return the document of a template of a chart, what a person has to know of it, and the objects that it makes."""
    others = tuple(name for name in sorted(desired.clusters) if name != live.primary)
    own = workspace or Workspace(
        name=workload.workspace, primary=live.primary, clusters=others, namespaces=live.namespaces
    )
    document = _document(live, workload, desired.kinds, chart_spec(chart), chart_annotations(chart))
    return document, [*chart_notes(chart, desired, own)], [each.manifest for each in chart.release.objects]


def _document(
    live: LiveWorkload, workload: WorkloadId, kinds: Kinds, spec: Json, annotations: Mapping[str, Json] | None = None
) -> Json:
    """Return the document of a template that counts a live workload."""
    kind = str(live.manifest.get("kind"))
    group = str(live.manifest.get("apiVersion", "")).rpartition("/")[0]
    full_kind = f"{kind}.{group}" if len(kinds_named(kind, kinds)) > 1 and group not in ("apps", "batch") else kind
    counted = {WORKLOAD: f"{full_kind}/{live.namespace}/{live.name}"}
    return {
        "apiVersion": "gpr.kubeslice.io/v1alpha1",
        "kind": "WorkloadTemplate",
        "metadata": {"name": workload.name, "annotations": {**counted, **(annotations or {})}},
        "spec": {"workspaceName": workload.workspace, "namespaces": [*live.namespaces], **spec},
    }


def _reference(live: LiveWorkload, followed: Iterable[Mapping[str, Json]]) -> Json:
    """Write a live workload as the source of a template, with companions; its apiVersion where it is not the usual."""
    version = str(live.manifest.get("apiVersion"))
    usual = {} if version == "apps/v1" else {"apiVersion": version}
    names = {"kind": live.manifest.get("kind"), "namespace": live.namespace, "name": live.name}
    listed = [f"{str(each['kind']).casefold()}/{at(each, ('metadata', 'name'))}" for each in followed]
    return {"from": {"workload": {**usual, **names}, **({"companions": listed} if listed else {})}}


def _written_objects(names: list[str], resources: list[dict[str, Json]]) -> Json:
    return {
        "manifestResources": [
            {"name": name, "manifest": resource} for name, resource in zip(names, resources, strict=True)
        ],
        "steps": [{"name": name, "type": "manifest"} for name in names],
    }


def _copied(live: LiveWorkload, kinds: Kinds) -> list[dict[str, Json]]:
    """Return the companions that the pods cannot start without, portable, in the order of the steps."""
    needed = {(each.category, each.name) for each in needed_objects(live, kinds)}
    copied = []
    for category, (version, kind) in COPIED.items():
        wanted = group_kind({"apiVersion": version, "kind": kind})
        for manifest in live.companions:
            key = category, f"{live.namespace}/{at(manifest, ('metadata', 'name'))}"
            its_own = kind == "ConfigMap" and at(manifest, ("metadata", "name")) in OF_THE_CLUSTER
            if group_kind(manifest) == wanted and key in needed and not its_own:
                copied.append(portable(manifest))
    return copied


_POD_NAME = "statefulset.kubernetes.io/pod-name"
_JOB_NAMES = ("job-name", "batch.kubernetes.io/job-name")


def _serves(service: Mapping[str, Json], workload: Mapping[str, Json], kinds: Kinds) -> bool:
    """Return whether an object is a Service that selects pods of a workload, by the labels that they come to have.

    One that a controller makes, as those of LeaderWorkerSets and JobSets do, is made elsewhere as well: two would write
    the same object there.
    """
    selector = at(service, ("spec", "selector"))
    if group_kind(service) != "/Service" or not isinstance(selector, dict) or not selector:
        return False
    owners = at(service, ("metadata", "ownerReferences"))
    if any(owner.get("controller") for owner in (owners if isinstance(owners, list) else ())):
        return False
    name, kind = str(at(workload, ("metadata", "name"))), kind_of(workload, kinds)
    added = {mark.label: name for mark in (() if kind is None else kind.marks) if not mark.made_up}
    if kind is not None and kind.name == "batch/Job":
        added |= dict.fromkeys(_JOB_NAMES, name)
    one_pod = selector.get(_POD_NAME)
    if kind is not None and kind.ordinals and isinstance(one_pod, str) and one_pod.startswith(f"{name}-"):
        added[_POD_NAME] = one_pod
    labels = (pod_metadata(workload, site)["labels"] for site in pod_template_sites(workload, kinds))
    return any(selector.items() <= {**own, **added}.items() for own in labels)


def _needed(manifests: Iterable[Mapping[str, Json]], live: LiveWorkload, kinds: Kinds) -> tuple[Prerequisite, ...]:
    resources = tuple(
        ManifestResource(name=str(number), manifest=manifest) for number, manifest in enumerate(manifests)
    )
    steps = tuple(Step(name=resource.name, type=StepType.MANIFEST) for resource in resources)
    alone = Workspace(
        name=WorkspaceName(live.namespace), primary=live.primary, clusters=(), namespaces=(live.namespace,)
    )
    needed = prerequisites(DeploySpec(manifests=resources, steps=steps), alone, kinds)
    return tuple(prerequisite for prerequisite in needed if prerequisite.category is not Category.API_VERSIONS)


def _notes(live: LiveWorkload, resources: list[dict[str, Json]], kinds: Kinds) -> Iterator[str]:
    """Say what comes into git, what other clusters have to provide, and what of it is tied to its own cluster."""
    yield from _copied_notes(live, resources)
    if live.services_unread:
        yield f"Services of {live.namespace}: none is in the template, since {live.primary} {live.services_unread}"
    for place in pod_template_sites(live.manifest, kinds):
        selector = at(live.manifest, (*map(str, place.loc), "nodeSelector")) if place.loc else None
        tied = [key for key in _TIED if isinstance(selector, dict) and key in selector]
        if tied:
            yield f"nodeSelector {join_names(tied)}: only nodes with this value are taken, elsewhere as well"
    kind = kind_of(live.manifest, kinds)
    if kind is not None and kind.once:
        yield f"{kind.kind}: runs once, so it is placed elsewhere only while the one on {live.primary} is held"
    owners = at(live.manifest, ("metadata", "ownerReferences"))
    for owner in owners if isinstance(owners, list) else ():
        yield f"{live.title}: {owner.get('kind')} {owner.get('name')} makes it, and may be what you mean to lend"
    name, namespace = (at(live.manifest, ("metadata", "annotations", key)) for key in _HELM)
    if name:
        lend = f"overspill lend release/{name} --namespace {namespace or live.namespace}"
        yield f"{live.title}: it is of the Helm release {name}; `{lend}` writes a template of the chart instead"


def _lacking_notes(
    live: LiveWorkload, resources: Iterable[Mapping[str, Json]], kinds: Kinds
) -> Iterator[tuple[str, frozenset[tuple[Category, str]]]]:
    """Say what objects need that is not among them, and so has to be in each cluster of a burst."""
    lacking: dict[Category, list[str]] = {}
    for needed in _needed(resources, live, kinds):
        if needed.name.rpartition("/")[2] not in OF_THE_CLUSTER:
            lacking.setdefault(needed.category, []).append(needed.name)
    for category, names in lacking.items():
        what = f"{_NOUNS.get(category, category)} {join_names(names)}"
        yield f"{what}: {_why_lacking(category, live)}", frozenset((category, name) for name in names)


def _why_lacking(category: Category, live: LiveWorkload) -> str:
    """Say why needed objects of a category are not written, and what has to be done."""
    has_to = "each cluster of a burst has to have it"
    if category is Category.SECRETS:
        return f"not copied, since no secret belongs in git; {has_to}"
    if category in COPIED and live.chart is not None:
        return f"not made by the chart; {has_to}"
    if category in COPIED and live.source:
        return f"not in {live.source}; add it there, or {has_to}"
    if category in COPIED:
        return f"not found on {live.primary}, or not readable; {has_to}"
    if category is Category.STORAGE_CLASSES:
        return f"{has_to}; without storageClassName each takes its default"
    return has_to


def _copied_notes(live: LiveWorkload, resources: list[dict[str, Json]]) -> Iterator[str]:
    """Say of copied objects what a person has to look at."""
    for resource in resources:
        name = at(resource, ("metadata", "name"))
        match group_kind(resource):
            case "/ConfigMap":
                keys = [*(resource.get("data") or ()), *(resource.get("binaryData") or ())]
                held = "its key" if len(keys) == 1 else f"its {count(len(keys), 'key')}"
                if keys:
                    yield f"ConfigMap {name}: see that no credential comes into git with {held}"
            case "/PersistentVolumeClaim":
                yield f"claim {name}: each cluster has its own, which begins empty; load it in an init container, say"
            case "/Service":
                before = next((each for each in live.companions if _is_same(each, resource)), {})
                left = [field for field in ADDRESSES if at(before, ("spec", field))]
                ports = at(before, ("spec", "ports"))
                left += ["nodePort"] if any("nodePort" in port for port in ports or ()) else []
                if left:
                    yield f"Service {name}: {join_names(left)} of {live.primary} left out"


def _is_same(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    names = [(each.get("kind"), at(each, ("metadata", "name"))) for each in (one, other)]
    return names[0] == names[1]


_NOUNS = {
    Category.CONFIG_MAPS: "ConfigMap", Category.SECRETS: "Secret", Category.SERVICE_ACCOUNTS: "ServiceAccount",
    Category.VOLUMES: "PersistentVolumeClaim", Category.CLAIM_TEMPLATES: "ResourceClaimTemplate",
    Category.CLAIMS: "ResourceClaim", Category.PRIORITY_CLASSES: "PriorityClass", Category.KINDS: "kind",
    Category.RUNTIME_CLASSES: "RuntimeClass", Category.STORAGE_CLASSES: "StorageClass", Category.QUEUES: "queue",
    Category.SCHEDULERS: "scheduler", Category.DEVICE_CLASSES: "DeviceClass", Category.IMAGES: "image",
    Category.NETWORKS: "NetworkAttachmentDefinition", Category.TOPOLOGIES: "Topology",
    Category.POD_GROUPS: "PodGroup", Category.RUNTIMES: "runtime",
}  # fmt: skip # a table of words, filled line by line


def _template_text(live: LiveWorkload, template: Json, *, reference: bool) -> str:
    if live.chart is not None:
        release = live.chart.release
        return (
            "# yaml-language-server: $schema=../schemas/WorkloadTemplate.json\n"
            f"# What a burst of {live.title} deploys: the chart of {release.title} on {live.primary}.\n"
            "# Expressions such as {{ replicas }} and {{ cluster.name }} are filled in for each burst.\n"
            f"{yaml.emit(template)}"
        )
    if reference:
        return (
            "# yaml-language-server: $schema=../schemas/WorkloadTemplate.json\n"
            f"# A burst of {live.title} runs what {live.primary} runs at the time; other objects stand here.\n"
            f"{yaml.emit(template)}"
        )
    return (
        "# yaml-language-server: $schema=../schemas/WorkloadTemplate.json\n"
        f"# What a burst of {live.title} deploys: objects of {live.primary}, without what belongs to it alone.\n"
        "# Expressions such as {{ replicas }} and {{ cluster.name }} are filled in for each burst.\n"
        f"{yaml.emit(template)}"
    )


def _workspace_text(live: LiveWorkload, name: WorkspaceName, desired: Desired) -> str:
    others = [cluster for cluster in sorted(desired.clusters) if cluster != live.primary]
    document = {
        "apiVersion": _API_VERSION,
        "kind": "Workspace",
        "metadata": {"name": name},
        "spec": {"primaryCluster": live.primary, "clusters": [live.primary, *others], "namespaces": [*live.namespaces]},
    }
    return (
        "# yaml-language-server: $schema=../schemas/Workspace.json\n"
        f"# A tenant: its workloads live on {live.primary}, may burst to the clusters named here, and use these"
        f" namespaces.\n{yaml.emit(document)}"
    )


def _policy_text(live: LiveWorkload, workload: WorkloadId, spec: Json) -> str:
    document = {
        "apiVersion": _API_VERSION,
        "kind": "BurstPolicy",
        "metadata": {"name": workload.name},
        "spec": {"templates": [workload.name], **spec},
    }
    return (
        "# yaml-language-server: $schema=../schemas/BurstPolicy.json\n"
        f"# When replicas of {live.title} that find no room burst, where to, and for how long.\n"
        f"{yaml.emit(document)}"
    )
