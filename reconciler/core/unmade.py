"""Which subsets of a WorkloadSpread make no pods of what templates deploy, before anything is missing.

What is found here is what a placement would be refused for as `NotRendered`, as far as files tell. What a chart makes
that Overspill renders is not known yet.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from reconciler.core.charted import goes_whole
from reconciler.core.dialect import has_expression
from reconciler.core.engines import engine
from reconciler.core.engines.deployment import chart_steps
from reconciler.core.engines.subsetpods import installs, unaimed
from reconciler.core.findings import Finding, Loc
from reconciler.core.injecting import injected, targets
from reconciler.core.narrowing import takes
from reconciler.core.subsets import Injection, injection
from reconciler.core.wording import listed
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Cluster, Desired
from reconciler.model.workload import Json, StepType, WorkloadTemplate
from reconciler.model.workloadspread import Subset, WorkloadSpread

_SUBSETS: Loc = ("spec", "subsets")


def unpatched(spread: WorkloadSpread, templates: Iterable[WorkloadTemplate], desired: Desired) -> Iterator[Finding]:
    """Tell which patches and tolerations make no pods of those that templates deploy, whatever the cluster."""
    for template in templates:
        manifests = _targeted(spread, template)
        for index, subset in enumerate(spread.subsets):
            loc: Loc = (*_SUBSETS, index, "patch" if subset.patch else "tolerations")
            for problem in _made(manifests, Injection(spread=spread, subset=subset), template, desired):
                yield Finding(loc=loc, message=f"{template.workload}: {problem.message}", hint=problem.hint)


def refused(spread: WorkloadSpread, templates: Iterable[WorkloadTemplate], desired: Desired) -> Iterator[Finding]:
    """Warn of subsets that some of their clusters are refused for: by an engine, by ordinals, or without a target."""
    for template in templates:
        if goes_whole(template.spec, template.ref, template.group_size, desired.kinds):
            continue  # it is not spread
        manifests = _targeted(spread, template)
        for index, subset in enumerate(spread.subsets):
            found: dict[tuple[str, str], list[ClusterName]] = {}
            for name, problems in _by_cluster(spread, subset, manifests, template, desired):
                for problem in problems:
                    found.setdefault((problem.message, problem.hint), []).append(name)
            for (message, hint), clusters in found.items():
                said = f"{template.workload} on {listed(clusters)}: {message}"
                yield Finding(loc=(*_SUBSETS, index), message=said, hint=hint, severity=Severity.WARNING)


def _targeted(spread: WorkloadSpread, template: WorkloadTemplate) -> list[Mapping[str, Json]]:
    """List the objects that a spread targets, of those that the steps of a template make."""
    named = {step.name for step in template.spec.steps if step.type is StepType.MANIFEST}
    manifests = [one.manifest for one in template.spec.manifests if one.name in named]
    return [manifests[index] for index in sorted(targets(manifests, spread))]


def _by_cluster(
    spread: WorkloadSpread,
    subset: Subset,
    manifests: Sequence[Mapping[str, Json]],
    template: WorkloadTemplate,
    desired: Desired,
) -> Iterator[tuple[ClusterName, tuple[Problem, ...]]]:
    """Yield what each cluster of a subset is refused for. Clusters that are alike for it are looked at once."""
    workspace, known = desired.workspaces[template.workspace], dict[Hashable, tuple[Problem, ...]]()
    for name in workspace.clusters:
        cluster = desired.clusters.get(name)
        if name == workspace.primary or cluster is None or not takes(subset, cluster):
            continue
        try:
            asked = injection(spread, subset, cluster)
        except ValueError:
            return  # it has no ordinals of its own anywhere, which is told of the spread
        if manifests and not asked.start:
            return  # terms of nodes can be written of any manifest
        key = (cluster.engine, asked.required, asked.preferred)
        if key not in known:
            there = _numbered(manifests, asked, template, desired) if manifests else None
            known[key] = _left(asked, template, cluster, desired) if there is None else there
        yield name, known[key]


def _numbered(
    manifests: Sequence[Mapping[str, Json]], asked: Injection, template: WorkloadTemplate, desired: Desired
) -> tuple[Problem, ...]:
    """Say why objects cannot leave ordinals to others; what is wrong with them besides has been told."""
    plain = tuple(_made(manifests, Injection(spread=asked.spread, subset=asked.subset), template, desired))
    return () if plain else tuple(_made(manifests, asked, template, desired))


def _made(
    manifests: Iterable[Mapping[str, Json]], asked: Injection, template: WorkloadTemplate, desired: Desired
) -> Iterator[Problem]:
    """Yield why the pods of objects cannot be made those of a subset."""
    workspace = desired.workspaces[template.workspace]
    for manifest in manifests:
        try:
            injected(manifest, asked, workspace, desired.kinds)
        except InvalidInput as error:
            yield from error.problems


def _left(asked: Injection, template: WorkloadTemplate, cluster: Cluster, desired: Desired) -> tuple[Problem, ...]:
    """Say why a subset changes nothing where no manifest is its target: the engine cannot, or nothing makes it."""
    installer, spec = engine(cluster.engine), template.spec
    kinds = (str(one.manifest.get(field)) for one in spec.manifests for field in ("apiVersion", "kind"))
    try:
        if installs(spec, installer.to_render(spec)):
            installer.patches(asked, desired.kinds)
        elif asked.changes and not chart_steps(spec) and not any(map(has_expression, kinds)):
            raise unaimed(asked)
    except InvalidInput as error:
        return error.problems
    return ()
