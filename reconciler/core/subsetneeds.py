"""What a cluster must have first for a subset: what its patch makes the pods refer to, and not what it takes away."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.brought import brought
from reconciler.core.engines.deployment import target_namespace
from reconciler.core.podneeds import mapping, of_metadata, of_pod
from reconciler.core.prerequisites import namespace_of, objects_of, prerequisites
from reconciler.core.wording import plain
from reconciler.core.workloadkinds import Kinds
from reconciler.model.policy import Workspace
from reconciler.model.prerequisites import Category, Prerequisite
from reconciler.model.workload import DeploySpec, WorkloadTemplate
from reconciler.model.workloadspread import Subset


def instead(
    template: WorkloadTemplate, own: DeploySpec, patched: DeploySpec, name: str, *, workspace: Workspace, kinds: Kinds
) -> tuple[Prerequisite, ...]:
    """Return a template's prerequisites without those that only its `own` objects have, with those of the `patched`.

    `name` says of what they are.
    """
    before = {_key(one): one for one in prerequisites(own, workspace, kinds)}
    after = {_key(one): one for one in prerequisites(patched, workspace, kinds)}
    kept = [one for one in template.prerequisites if _key(one) not in before or _key(one) in after]
    new = [replace(one, by=f"{one.by} in {name}") for key, one in after.items() if key not in before]
    return (*kept, *new)


def with_patch(
    template: WorkloadTemplate, subset: Subset, namespace: str, workspace: Workspace
) -> tuple[Prerequisite, ...]:
    """Return a template's prerequisites and what a patch names, where nobody knows the pods that it changes."""
    target = target_namespace(template.spec, workspace)
    there = {_key(one) for one in template.prerequisites}
    for manifest in objects_of(template.spec):
        there.update(brought(manifest, namespace_of(manifest, target)))
    named = (*of_pod(mapping(subset.patch.get("spec"))), *of_metadata(mapping(subset.patch.get("metadata"))))
    found = dict.fromkeys(
        (category, f"{namespace}/{name}" if own and "/" not in name else name) for category, name, own in named
    )
    new = (Prerequisite(category=one[0], name=one[1], by=called(subset)) for one in found if one not in there)
    return (*template.prerequisites, *new)


def _key(one: Prerequisite) -> tuple[Category, str]:
    return one.category, one.name


def called(subset: Subset) -> str:
    """Name a subset as who needs something."""
    return f"subset {plain(subset.name)}"
