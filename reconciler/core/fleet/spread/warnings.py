"""Warnings about WorkloadSpreads: fields without effect beside templates, policies and clusters, and empty subsets.

A subset that cannot be injected into the objects of a template would refuse a placement as `NotRendered`; the warning
comes before the first shortage, as far as files tell. The objects of rendered charts are unknown here.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from reconciler.core.capacity.chart_gangs import is_declared_gang
from reconciler.core.engines import engine
from reconciler.core.engines.deployment import chart_steps
from reconciler.core.engines.subset_patches import installs_chart, missing_target
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.fleet.objects import MAX_LISTED_NAMES, first_names
from reconciler.core.observe.counted_object import WORKLOAD
from reconciler.core.schema.workloadspread import WorkloadSpreadFile
from reconciler.core.spread.inject import inject_subset, target_indexes
from reconciler.core.spread.subset_pods import Injection, has_ordinals, injection, ordinals_start
from reconciler.core.spread.subset_selection import selects_cluster, selects_pods
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.policy import BurstPolicy, Cluster, Desired, Workspace
from reconciler.model.workload import Json, StepType, WorkloadRef, WorkloadTemplate
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import closest, suggested
from reconciler.text.wording import join_names

_TARGET: Loc = ("spec", "targetRef")
_SUBSETS: Loc = ("spec", "subsets")
_LONGEST, _MOST_COMPARED, _MOST_GUESSES = 100, 200, 20
"""Characters of a name that are compared, names that it is compared with, and spreads that get a suggestion."""
_ALIKE = 0.75
"""Similarity above which two keys count as a typing error."""


class BurstTargets:
    """The objects that templates burst for; a spread with an unknown target is pointed to a similar name."""

    def __init__(self, refs: Iterable[WorkloadRef]) -> None:
        """Index the references by the parts that they share with a target."""
        self._named: dict[str, list[WorkloadRef]] = {}
        self._beside: dict[str, set[str]] = {}
        self._guesses = _MOST_GUESSES
        for ref in refs:
            self._named.setdefault(ref.name, []).append(ref)
            self._beside.setdefault(ref.namespace, set()).add(ref.name)

    def unmatched(self, spread: WorkloadSpread, file: WorkloadSpreadFile) -> Finding:
        """Warn of a spread that governs no template."""
        target = spread.target
        wanted = f"{target.kind}/{target.namespace}/{target.name}"
        named = self._named.get(target.name, [])
        message = f"no template bursts replicas of {shortened(wanted)}, so that nothing is spread"
        if not file.metadata.namespace:
            message += f"; without metadata.namespace it is in {spread.namespace}"
        hint = f"annotate the template: {WORKLOAD}: {shortened(wanted)}"
        # 1. A template bursts for exactly this object, but another reason excludes it.
        if any(ref.namespace == target.namespace and ref.kind in ("", target.kind) for ref in named):
            message = f"the template that bursts replicas of {shortened(wanted)} is not governed by it"
            hint = "its workspace may not touch the namespace, the annotation names another, or its group differs"
        # 2. A template bursts for an object of this name elsewhere, or of another kind.
        elif named:
            closest = min(named, key=lambda ref: ref.kind not in ("", target.kind))
            hint = f"try '{closest.kind or target.kind}/{closest.namespace}/{closest.name}'"
            if not file.metadata.namespace:
                hint = f"try metadata.namespace: {closest.namespace}"
        # 3. A template bursts for an object of nearly this name.
        elif likely := self._likely(target):
            hint = f"try '{likely}'"
        return Finding(loc=_TARGET, message=message, hint=hint, severity=Severity.WARNING)

    def _likely(self, target: WorkloadRef) -> str:
        """Return the nearest name, as long as the number of comparisons permits."""
        self._guesses -= 1
        names = sorted(self._beside.get(target.namespace, ()))[:_MOST_COMPARED]
        return suggested(target.name, names) if self._guesses >= 0 else ""


def warn_policies(policies: Iterable[BurstPolicy], written: Collection[str]) -> Iterator[Finding]:
    """Report the policies that a spread overrides, or that override it; `written` are those from files."""
    for policy in policies:
        if not policy.distribution.is_strategy_alone:
            message = f"BurstPolicy {policy.name} has a distribution of its own: subsets only bound its clusters"
            hint = "leave all but strategy out of spec.distribution there, or give the template another BurstPolicy"
            yield Finding(loc=_SUBSETS, message=message, hint=hint)
        elif policy.candidates and policy.name in written and not policy.distribution.traits.uses_weight:
            message = f"they go before spec.clusters of BurstPolicy {policy.name}"
            hint = "leave spec.clusters out there, or give the template another BurstPolicy"
            yield Finding(loc=_SUBSETS, message=message, hint=hint, severity=Severity.WARNING)


def warn_gangs(templates: Iterable[WorkloadTemplate], kinds: Kinds) -> Iterator[Finding]:
    """Warn of gangs among the templates of a spread: a gang is on one cluster and cannot be spread."""
    for template in templates:
        if is_declared_gang(template.spec, template.ref, template.group_size, kinds):
            message = f"{template.workload} runs in groups and has one cluster, so that subsets only bound its clusters"
            hint = "order its clusters in spec.clusters of its BurstPolicy; limits and patches are without effect"
            yield Finding(loc=_TARGET, message=message, hint=hint, severity=Severity.WARNING)


def warn_empty_subsets(
    spread: WorkloadSpread,
    file: WorkloadSpreadFile,
    workspaces: Collection[Workspace],
    clusters: Mapping[ClusterName, Cluster],
) -> Iterator[Finding]:
    """Warn of subsets without any cluster of these workspaces; silent if one of them is undescribed."""
    names = {name for workspace in workspaces for name in workspace.everywhere}
    if not names <= clusters.keys():
        return
    usable = [clusters[name] for name in sorted(names)]
    for index, subset in enumerate(spread.subsets):
        term = subset.required
        if (
            term is None
            or not (term.labels or term.fields)
            or any(selects_cluster(subset, cluster) for cluster in usable)
        ):
            continue
        # Labels that no cluster has are wrong by themselves; if each is met by some cluster, the combination is wrong.
        wrong = {label.key for label in term.labels if not any(_meets(label, cluster) for cluster in usable)}
        keys = wrong or {label.key for label in term.labels}
        values = sorted(
            {f"{key}={value}" for cluster in usable for key, value in cluster.labels.items() if key in keys}
        )
        which = ", ".join(sorted(workspace.name for workspace in workspaces))
        yield Finding(
            loc=(*_SUBSETS, index, file.spec.subsets[index].required()[0]),
            message=f"no Cluster of workspace {which} meets it, so that the subset holds nothing",
            hint=f"they have {first_names(values)}" if values else f"they are {first_names(sorted(names))}",
            severity=Severity.WARNING,
        )


def warn_misspelt_labels(
    spread: WorkloadSpread,
    file: WorkloadSpreadFile,
    workspaces: Collection[Workspace],
    clusters: Mapping[ClusterName, Cluster],
) -> Iterator[Finding]:
    """Warn of label keys that no cluster of these workspaces has, if one of their keys is nearly the same.

    Any other key may be a label of nodes, which files do not list; labels of nodes that an autoscaler may add are
    known.
    """
    usable = [clusters[name] for workspace in workspaces for name in workspace.everywhere if name in clusters]
    label_keys = {key for cluster in usable for key in cluster.labels}
    label_keys |= {key for cluster in usable for nodes in cluster.autoscaling for key in nodes.labels}
    guesses, warned = _MOST_GUESSES, set[str]()
    for index, subset in enumerate(spread.subsets):
        written = file.spec.subsets[index]
        required = () if subset.required is None else ((written.required()[0], subset.required),)
        for field, term in (
            *required,
            *((written.preferred()[0], preferred_term.term) for preferred_term in subset.preferred),
        ):
            for key in dict.fromkeys(label.key for label in term.labels if label.key not in label_keys):
                guesses -= 1
                likely = (
                    _nearest_key(key, sorted(label_keys)[:_MOST_COMPARED]) if guesses >= 0 and key not in warned else ""
                )
                warned.add(key)
                if likely:
                    message = f"no Cluster has a label {shortened(key)}, so that it is asked of nodes"
                    loc: Loc = (*_SUBSETS, index, field)
                    yield Finding(loc=loc, message=message, hint=f"try '{likely}'", severity=Severity.WARNING)


def _nearest_key(key: str, label_keys: Iterable[str]) -> str:
    """Return the nearest key with the same prefix; empty without one."""
    prefix, _, name = key[:_LONGEST].rpartition("/")
    beside = {
        label_key.rpartition("/")[2]: label_key for label_key in label_keys if label_key.rpartition("/")[0] == prefix
    }
    return beside.get(closest(name, beside, cutoff=_ALIKE), "")


def warn_shared_ordinals(
    spread: WorkloadSpread, workspaces: Iterable[Workspace], clusters: Mapping[ClusterName, Cluster]
) -> Iterator[Finding]:
    """Warn of pods of a StatefulSet with equal ordinals or none, since the primary's are never changed."""
    if not has_ordinals(spread):
        return
    first, *others = spread.subsets
    target = f"{spread.target.kind} {spread.target.name}"
    for workspace in workspaces:
        primary = clusters.get(workspace.primary)
        if primary is not None and not selects_cluster(first, primary):
            yield Finding(
                loc=(*_SUBSETS, 0),
                message=f"primary {primary.name} of workspace {workspace.name} is not in it, so that {target} has"
                " the same ordinals there as here",
                hint=f"begin with a subset that {primary.name} is in, with as many maxReplicas as it runs",
                severity=Severity.WARNING,
            )
    for index, subset in enumerate(others, start=1):
        try:
            ordinals_start(spread, subset)
        except ValueError as error:
            hint = "give each subset before it a maxReplicas in replicas"
            yield Finding(loc=(*_SUBSETS, index), message=str(error), hint=hint, severity=Severity.WARNING)


def _meets(requirement: Requirement, cluster: Cluster) -> bool:
    """Return whether a cluster meets a requirement by its labels, or leaves it to its nodes."""
    value = cluster.labels.get(requirement.key)
    return value is None or requirement.is_met(value)


def warn_unmatched_selector(
    spread: WorkloadSpread, templates: Iterable[WorkloadTemplate], kinds: Kinds
) -> Iterator[Finding]:
    """Warn of a selector that matches none of the pods of its target, as templates deploy it.

    Only for kinds with one pod template: with several roles, controllers label the pods of each.
    """
    for template in templates:
        manifest = deployed_target(template, spread.target)
        kind = None if manifest is None else kind_of(manifest, kinds)
        if manifest is None or kind is None or len(kind.templates) != 1 or kind.together is not None:
            continue
        labels = at(manifest, kind.templates[0].labels) if kind.templates[0].labels else None
        if not isinstance(labels, Mapping) or any(
            has_expression(str(text)) for pair in labels.items() for text in pair
        ):
            continue
        if not selects_pods(spread, {str(key): str(value) for key, value in labels.items()}):
            message = f"selects none of the pods of {spread.target.kind} {spread.target.name} in {template.workload}"
            some = ", ".join(f"{key}: {value}" for key, value in [*labels.items()][:MAX_LISTED_NAMES])
            loc: Loc = ("spec", "targetFilter", "selector")
            yield Finding(loc=loc, message=message, hint=f"they have {some}", severity=Severity.WARNING)


def deployed_target(template: WorkloadTemplate, target: WorkloadRef) -> Mapping[str, Json] | None:
    """Return the manifest of the target in a template; None if the template has none."""
    for resource in template.spec.manifests:
        metadata = resource.manifest.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        if resource.manifest.get("kind") == target.kind and name == target.name:
            return resource.manifest
    return None


_SUBSETS_unmade: Loc = ("spec", "subsets")


def check_patches(spread: WorkloadSpread, templates: Iterable[WorkloadTemplate], desired: Desired) -> Iterator[Finding]:
    """Report patches and tolerations that cannot be injected into the objects of templates, on any cluster."""
    for template in templates:
        manifests = _targeted_objects(spread, template)
        for index, subset in enumerate(spread.subsets):
            loc: Loc = (*_SUBSETS_unmade, index, "patch" if subset.patch else "tolerations")
            for problem in _injection_problems(manifests, Injection(spread=spread, subset=subset), template, desired):
                yield Finding(loc=loc, message=f"{template.workload}: {problem.message}", hint=problem.hint)


def warn_refused_clusters(
    spread: WorkloadSpread, templates: Iterable[WorkloadTemplate], desired: Desired
) -> Iterator[Finding]:
    """Warn of subsets that some of their clusters refuse: by engine, by ordinals, or without a target."""
    for template in templates:
        if is_declared_gang(template.spec, template.ref, template.group_size, desired.kinds):
            continue  # gangs are not spread
        manifests = _targeted_objects(spread, template)
        for index, subset in enumerate(spread.subsets):
            clusters_by_problem: dict[tuple[str, str], list[ClusterName]] = {}
            for name, problems in _by_cluster(spread, subset, manifests, template, desired):
                for problem in problems:
                    clusters_by_problem.setdefault((problem.message, problem.hint), []).append(name)
            for (message, hint), clusters in clusters_by_problem.items():
                text = f"{template.workload} on {join_names(clusters)}: {message}"
                yield Finding(loc=(*_SUBSETS_unmade, index), message=text, hint=hint, severity=Severity.WARNING)


def _targeted_objects(spread: WorkloadSpread, template: WorkloadTemplate) -> list[Mapping[str, Json]]:
    """List the objects that a spread targets among those that the steps of a template create."""
    named = {step.name for step in template.spec.steps if step.type is StepType.MANIFEST}
    manifests = [manifest.manifest for manifest in template.spec.manifests if manifest.name in named]
    return [manifests[index] for index in sorted(target_indexes(manifests, spread))]


def _by_cluster(
    spread: WorkloadSpread,
    subset: Subset,
    manifests: Sequence[Mapping[str, Json]],
    template: WorkloadTemplate,
    desired: Desired,
) -> Iterator[tuple[ClusterName, tuple[Problem, ...]]]:
    """Yield the problems of each cluster of a subset. Equivalent clusters are checked once."""
    workspace, problems_by_likeness = desired.workspaces[template.workspace], dict[Hashable, tuple[Problem, ...]]()
    for name in workspace.clusters:
        cluster = desired.clusters.get(name)
        if name == workspace.primary or cluster is None or not selects_cluster(subset, cluster):
            continue
        try:
            asked = injection(spread, subset, cluster)
        except ValueError:
            return  # the subset has no ordinals of its own, which is reported for the spread
        if manifests and not asked.start:
            return  # node terms can be written into any manifest
        key = (cluster.engine, asked.required, asked.preferred)
        if key not in problems_by_likeness:
            problems = _ordinal_problems(manifests, asked, template, desired) if manifests else None
            problems_by_likeness[key] = (
                _engine_problems(asked, template, cluster, desired) if problems is None else problems
            )
        yield name, problems_by_likeness[key]


def _ordinal_problems(
    manifests: Sequence[Mapping[str, Json]], asked: Injection, template: WorkloadTemplate, desired: Desired
) -> tuple[Problem, ...]:
    """Return why objects cannot leave ordinals to others; their other problems have been reported."""
    plain = tuple(
        _injection_problems(manifests, Injection(spread=asked.spread, subset=asked.subset), template, desired)
    )
    return () if plain else tuple(_injection_problems(manifests, asked, template, desired))


def _injection_problems(
    manifests: Iterable[Mapping[str, Json]], asked: Injection, template: WorkloadTemplate, desired: Desired
) -> Iterator[Problem]:
    """Yield why a subset cannot be injected into the pods of objects."""
    workspace = desired.workspaces[template.workspace]
    for manifest in manifests:
        try:
            inject_subset(manifest, asked, workspace, desired.kinds)
        except InvalidInput as error:
            yield from error.problems


def _engine_problems(
    asked: Injection, template: WorkloadTemplate, cluster: Cluster, desired: Desired
) -> tuple[Problem, ...]:
    """Return why a subset without a target manifest has no effect: the engine cannot patch, or nothing creates it."""
    installer, spec = engine(cluster.engine), template.spec
    kinds = (str(manifest.manifest.get(field)) for manifest in spec.manifests for field in ("apiVersion", "kind"))
    try:
        if installs_chart(spec, installer.to_render(spec)):
            installer.patches(asked, desired.workspaces[template.workspace], desired.kinds)
        elif asked.changes and not chart_steps(spec) and not any(map(has_expression, kinds)):
            raise missing_target(asked)
    except InvalidInput as error:
        return error.problems
    return ()
