"""Injection of a subset into the objects of a placement.

Of the objects of the WorkloadSpread's target kind, the one with the target's name is changed, or all where none has it;
in each, the pod templates of the role that the spread selects. The result has to pass the safety rules, each mounted
volume has to exist, and an object still has to select its pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.core.pods.strategic_merge import Unmergeable
from reconciler.core.safety import rules
from reconciler.core.spread import ordinal_fields
from reconciler.core.spread.subset_pods import Injection, has_ordinals, injection, patch_template
from reconciler.core.spread.subset_selection import selects_pods
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.paths import at, within
from reconciler.core.workloads.pods import PodTemplateSite, pod_template_sites
from reconciler.errors import InvalidInput, Severity
from reconciler.model.kubernetes.workload_kind import Path, PodTemplate
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.placement import Placement
from reconciler.model.policy import Desired, Workspace
from reconciler.model.workload import DeploySpec, Json, ManifestResource
from reconciler.text.findings import Finding, Loc

INSTEAD = "write it into the template itself, where an expression may ask for placement.subset"
_TRY = "mend its patch: kubectl patch --local --type strategic shows what becomes of a Pod"
_MANIFEST: Loc = ("spec", "manifestResources", 0, "manifest")


def placement_injection(desired: Desired, placement: Placement) -> Injection | None:
    """Return what the subset of a placement injects into its pods; None where it has no current subset.

    Its cluster has to be known. Raises InvalidInput where a StatefulSet would have no ordinals there.
    """
    policy = desired.policies.get(placement.workload)
    if policy is None or policy.spread is None:
        return None
    spread, subset = policy.spread, policy.subset(placement.subset)
    own = placement.first_ordinal if has_ordinals(spread) else None
    if subset is None:
        # A placement for a subset that is gone keeps its ordinals, and nothing else of the subset.
        return Injection(spread=spread, subset=Subset(name=placement.subset), start=own) if own else None
    try:
        return injection(spread, subset, desired.clusters[placement.cluster], start=own)
    except ValueError as error:
        hint = "give each subset before it a maxReplicas in replicas"
        raise injection_error(Injection(spread=spread, subset=subset), str(error), hint) from error


def target_indexes(manifests: Sequence[Mapping[str, Json]], spread: WorkloadSpread) -> frozenset[int]:
    """Return the indexes of the objects that a spread targets, in a list of a placement's objects."""
    wanted = f"{spread.group}/{spread.target.kind}"
    indexes = [index for index, manifest in enumerate(manifests) if group_kind(manifest) == wanted]
    named = [index for index in indexes if at(manifests[index], ("metadata", "name")) == spread.target.name]
    return frozenset(named or indexes)


def selected_templates(manifest: Mapping[str, Json], spread: WorkloadSpread, kinds: Kinds) -> tuple[Path, ...]:
    """Return the paths of the pod templates of the role that a spread selects, each once.

    Pods are selected by labels, which a controller may add for each role: where no template has them, the role is the
    one whose replicas the spread divides.
    """
    template_places = {
        tuple(map(str, place.loc[:-1])): place
        for place in reversed(tuple(pod_template_sites(manifest, kinds)))
        if has_own_metadata(place.template) and place.loc
    }
    labelled = [
        pod_path
        for pod_path in template_places
        if selects_pods(spread, _object(at(manifest, (*pod_path, "metadata", "labels"))))
    ]
    if not labelled:
        labelled = [
            pod_path for pod_path, place in template_places.items() if _replica_paths(place) & {*spread.replicas_paths}
        ]
    return tuple(pod_path for pod_path in reversed(template_places) if pod_path in labelled)


def inject_subset(
    manifest: Mapping[str, Json], injection: Injection, workspace: Workspace, kinds: Kinds
) -> Mapping[str, Json]:
    """Return an object whose pods are those of a subset.

    Raises InvalidInput that names the spread, the subset, the object and the field.
    """
    object_name = f"{manifest.get('kind')} {at(manifest, ('metadata', 'name'))}"
    pod_paths = selected_templates(manifest, injection.spread, kinds)
    if not pod_paths and not injection.changes:
        return manifest
    if not pod_paths and replace(injection, start=0).changes:
        raise injection_error(
            injection, f"{object_name} has no pod template {_describe_selection(injection.spread)}", INSTEAD
        )
    changed = manifest
    try:
        for pod_path in pod_paths:
            if not isinstance(at(changed, pod_path), Mapping):
                continue  # what an object lacks, its own check tells
            before = at(changed, (*pod_path, "spec"))
            changed = _put(changed, pod_path, patch_template(at(changed, pod_path), injection))
            if injection.subset.patch:
                _check_containers(before, _object(at(changed, (*pod_path, "spec"))))
                _check_mounts(_object(at(changed, (*pod_path, "spec"))), changed)
        if injection.start:
            changed = ordinal_fields.with_first_ordinal(changed, injection.start)
        _check_selector(manifest, changed)
        _check_rules(manifest, changed, workspace, kinds)
    except Unmergeable as error:
        raise injection_error(injection, f"{object_name}: {error}", error.hint or _TRY) from error
    return changed


def injection_error(injection: Injection, message: str, hint: str) -> InvalidInput:
    """Return the error of an impossible injection, at the subset's place in the file of its spread."""
    spread = injection.spread
    loc: Loc = ("spec", "subsets")
    if injection.subset in spread.subsets:
        loc = (*loc, spread.subsets.index(injection.subset))
    finding = Finding(loc=loc, message=f"{injection.called}: {message}", hint=hint)
    return InvalidInput(problems=(finding.problem(path=spread.path, line=spread.line),))


def has_own_metadata(template: PodTemplate) -> bool:
    """Return whether a template has its metadata beside the pod spec, as those of Kubernetes have."""
    return template.spec[-1:] == ("spec",) and template.labels == (*template.spec[:-1], "metadata", "labels")


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _replica_paths(place: PodTemplateSite) -> set[str]:
    """Return the fields of a template's replicas, as a spread writes them."""
    return {".".join(within(count.path, place.item, place.template.spec)) for count in place.template.counts}


def _describe_selection(spread: WorkloadSpread) -> str:
    """Describe the pod templates that the spread selects."""
    labels = [f"{key}={value}" for key, value in sorted(spread.selector.items())]
    labels += [selector_expression.key for selector_expression in spread.selector_expressions]
    return f"of its own with the labels that the spread selects, {', '.join(labels)}" if labels else "of its own"


def _put(value: Json, pod_path: Path, new: Json) -> Json:
    """Return a copy with a new value at a path; missing objects are created."""
    if not pod_path:
        return new
    part, rest = pod_path[0], pod_path[1:]
    if isinstance(value, list):
        return [_put(item, rest, new) if str(index) == part else item for index, item in enumerate(value)]
    current = value if isinstance(value, Mapping) else {}
    return {**current, part: _put(current.get(part), rest, new)}


def _check_containers(before: Json, spec: Mapping[str, Json]) -> None:
    """Raise Unmergeable for a container that only the patch adds, without an image."""
    for part in ("initContainers", "containers"):
        names = [mapping.get("name") for mapping in _mappings(at(before, (part,)))]
        for index, container in enumerate(_mappings(spec.get(part))):
            if container.get("name") not in names and not container.get("image"):
                listing = f" (there is {', '.join(map(str, names))})" if names else ""
                raise Unmergeable(("spec", part, index), f"{container.get('name')!r} has no image{listing}")


def _check_mounts(spec: Mapping[str, Json], manifest: Mapping[str, Json]) -> None:
    """Raise Unmergeable for a mounted volume that neither the pod nor a claim template has."""
    claims = at(manifest, ("spec", "volumeClaimTemplates"))
    named = [mapping.get("name") for mapping in _mappings(spec.get("volumes"))]
    named += [at(mapping, ("metadata", "name")) for mapping in _mappings(claims)]
    for part in ("initContainers", "containers"):
        for index, container in enumerate(_mappings(spec.get(part))):
            for number, mount in enumerate(_mappings(container.get("volumeMounts"))):
                if mount.get("name") not in named:
                    loc: Loc = ("spec", part, index, "volumeMounts", number, "name")
                    raise Unmergeable(loc, f"there is no volume {mount.get('name')!r}")


def _mappings(value: Json) -> Iterator[Mapping[str, Json]]:
    return (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else iter(())


def _check_selector(before: Mapping[str, Json], changed: Mapping[str, Json]) -> None:
    """Raise Unmergeable where an object would no longer select its own pods."""
    labels_path = ("spec", "template", "metadata", "labels")
    old, new = _object(at(before, labels_path)), _object(at(changed, labels_path))
    for key, value in _object(at(changed, ("spec", "selector", "matchLabels"))).items():
        if old.get(key) == value != new.get(key):
            raise Unmergeable((*labels_path, key), "is what the object selects its pods by, and has to stay")


def _check_rules(before: Mapping[str, Json], changed: Mapping[str, Json], workspace: Workspace, kinds: Kinds) -> None:
    """Raise Unmergeable where only the subset makes an object break a safety rule, or no valid object.

    Items of lists may move, so that findings are compared without the indexes in their locations.
    """

    def broken(manifest: Mapping[str, Json]) -> list[Finding]:
        spec = DeploySpec(manifests=(ManifestResource(name="", manifest=manifest),))
        findings = rules.check_safety(spec, workspace, kinds=kinds, rendered=True)
        return [finding for finding in findings if finding.severity is Severity.ERROR]

    def named(finding: Finding) -> tuple[Loc, str]:
        return tuple(part for part in finding.loc if not isinstance(part, int)), finding.message

    known = {named(finding) for finding in broken(before)}
    for finding in broken(changed):
        if named(finding) not in known:
            hint = f" ({finding.hint})" if finding.hint else ""
            raise Unmergeable(finding.loc[len(_MANIFEST) :], f"{finding.message}{hint}")
