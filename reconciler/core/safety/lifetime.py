"""No object outlives its placement (docs/reference/fleet.md, "Nothing stays behind").

An object of a placement goes when its engine prunes it. These parts of a manifest would keep it, and are refused unless
the template is retained as a whole:

1. finalizers and owner references, in the object or in what its controller makes from it: a finalizer that nobody
   removes keeps an object for ever, and Argo CD prunes nothing that has an owner;
2. a grace period of pods above `MAX_GRACE`, which keeps GPUs for as long;
3. instructions to an engine that are not known to be harmless (`INSTRUCTIONS`), as annotations or labels;
4. hooks without a delete policy: engines do not prune hooks.

What others live in or go by is the exception (`scope.outlives_placements`): a Namespace, a class or a definition stays
when the placement that has made it goes, for it would take along whatever else is in it.

Sources: docs/background/upstream/argocd.md, "Pruning and sync options" and "Waves and hooks";
docs/background/upstream/flux.md, "Pruning and deletion"; helm.sh/docs/topics/charts_hooks;
kubernetes.io/docs/concepts/overview/working-with-objects/finalizers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from reconciler.core.workloads.api_kinds import cluster_scoped
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened

MAX_GRACE = 3600
"""Seconds that a pod may take to end: an hour is time to write a checkpoint."""

_DOMAINS = (
    "argocd.argoproj.io",
    "helm.sh",
    "fluxcd.io",
    "toolkit.fluxcd.io",
    "kustomize.config.k8s.io",
    "config.kubernetes.io",
    "config.k8s.io",
    "internal.config.kubernetes.io",
    "cli-utils.sigs.k8s.io",
    "client.lifecycle.config.k8s.io",
    "applyset.kubernetes.io",
    "configmanagement.gke.io",
    "configsync.gke.io",
    "kapp.k14s.io",
    "objectset.rio.cattle.io",
    "fleet.cattle.io",
)
"""Domains, subdomains included, whose annotations and labels are instructions to engines that apply manifests."""

_NOTE_DOMAINS = ("link.argocd.argoproj.io",)
"""Subdomains of those whose annotations instruct nobody."""

_SYNC_OPTIONS = frozenset(
    {
        "ClientSideApplyMigration",
        "FailOnSharedResource",
        "Force",
        "PruneLast",
        "Replace",
        "ServerSideApply",
        "SkipDryRunOnMissingResource",
        "Validate",
    }
)
"""Options of Argo CD that have no part in what is pruned; `Prune` and `Delete` may be true."""

_HELM_HOOK = "helm.sh/hook"

HOOKS: Mapping[str, frozenset[str]] = {
    "argocd.argoproj.io/hook": frozenset({"HookSucceeded", "HookFailed"}),
    _HELM_HOOK: frozenset({"hook-succeeded", "hook-failed"}),
}
"""Annotations that make a hook of an object, and the delete policies by which the hook goes however it ends."""

_BLOCKING_HOOKS = frozenset({"predelete", "postdelete", "pre-delete", "post-delete", "skip"})
"""Hooks that keep an Application from going when they fail, and the one that keeps an object from being applied."""


_OWN_EFFECT = frozenset({"apiregistration.k8s.io/APIService", "rbac.authorization.k8s.io/ClusterRoleBinding"})
_OWN_EFFECT_GROUPS = frozenset({"admissionregistration.k8s.io"})
"""Cluster-scoped kinds in which nothing lives, and which do harm once what they are for is gone: rights that stay, and
webhooks and APIs that are called and do not answer."""


def has_own_effect(kind: str) -> bool:
    """Return whether nothing lives in objects of a ``group/Kind`` without a namespace, which go with placements."""
    return kind in _OWN_EFFECT or kind.partition("/")[0] in _OWN_EFFECT_GROUPS


def others_live_in(kind: str) -> bool:
    """Return whether objects of a ``group/Kind`` are known, by its name, to be what other objects live in or go by.

    `scope.outlives_placements` answers for one object, also by what the fleet repository says of its kind.
    """
    return cluster_scoped(kind) and not has_own_effect(kind)


def check_lifetime(manifest: Mapping[str, Json], loc: Loc, *, of_chart: bool = False) -> Iterator[Finding]:
    """Check an object for whatever would keep it in the cluster when its placement ends.

    The Helm hooks of the objects `of_chart` are Helm's own: of a chart that Overspill renders such a hook is an object
    as any other.
    """
    yield from _check_nested(manifest, loc)
    metadata = manifest.get("metadata")
    for field in ("annotations", "labels"):
        instructions = metadata.get(field) if isinstance(metadata, dict) else None
        if not isinstance(instructions, dict):
            continue
        for key, value in instructions.items():
            if (message := _instruction(key, str(value), instructions, of_chart=of_chart)) is not None:
                yield _stays((*loc, "metadata", field, key), message)


def _check_nested(value: Json, loc: Loc) -> Iterator[Finding]:
    """Check a value and all below it for finalizers, owner references and grace periods."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check_nested(item, (*loc, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            place = (*loc, key)
            if key == "terminationGracePeriodSeconds":
                if isinstance(item, int | float) and item > MAX_GRACE:
                    message = f"pods may take at most {MAX_GRACE} seconds to end"
                    yield Finding(loc=place, message=message, hint=f"{_RETAIN}, or write a shorter one")
            elif key in {"finalizers", "ownerReferences"} and item and loc and loc[-1] in {"metadata", "spec"}:
                yield _stays(place, f"{key} keep an object in the cluster when its placement goes")
            elif isinstance(item, dict | list):
                yield from _check_nested(item, place)


def _instruction(key: str, value: str, beside: Mapping[str, Json], *, of_chart: bool) -> str | None:
    """Say why an annotation or a label may not be given; None where it may."""
    domain, slash, _ = key.partition("/")
    if not slash or domain in _NOTE_DOMAINS:
        return None
    if not any(domain == engine_domain or domain.endswith(f".{engine_domain}") for engine_domain in _DOMAINS):
        return None
    # 1. A hook, which engines do not prune.
    if key in HOOKS:
        return None if of_chart and key == _HELM_HOOK else _hook(key, value, beside)
    # 2. An instruction that is harmless, at least with this value.
    if (harmless := INSTRUCTIONS.get(key)) is not None:
        return None if harmless(value) else "this keeps the object in the cluster when its placement goes"
    # 3. Everything else, which may mean anything to an engine.
    return "this is an instruction to an engine that may keep the object in the cluster when its placement goes"


def _hook(key: str, value: str, beside: Mapping[str, Json]) -> str | None:
    """Say why a hook may not be given: it would stay, or hold up its placement; None where it goes by itself."""
    kinds = _words(value)
    if any(kind.lower() in _BLOCKING_HOOKS for kind in kinds):
        return f"a hook of this kind ({shortened(value)}) can keep its placement from coming or from going"
    policies = _words(str(beside.get(f"{key}-delete-policy", "")))
    if policies >= HOOKS[key]:
        return None
    return f"engines do not prune hooks, so {key}-delete-policy has to name {' and '.join(sorted(HOOKS[key]))}"


def _words(text: str) -> set[str]:
    return {word.strip() for word in text.split(",") if word.strip()}


def _any(_value: str) -> bool:
    return True


def _sync_options(value: str) -> bool:
    """Return whether all options of a sync let the object go."""
    parted = (option.partition("=") for option in _words(value))
    return all(
        name in _SYNC_OPTIONS or (name in {"Prune", "Delete"} and set_to == "true") for name, _, set_to in parted
    )


INSTRUCTIONS: Mapping[str, Callable[[str], bool]] = {
    "argocd.argoproj.io/sync-wave": _any,
    "argocd.argoproj.io/sync-options": _sync_options,
    "argocd.argoproj.io/hook-delete-policy": _any,
    "argocd.argoproj.io/compare-options": lambda value: (
        _words(value) <= {"ServerSideDiff=true", "ServerSideDiff=false"}
    ),
    "argocd.argoproj.io/ignore-healthcheck": _any,
    "argocd.argoproj.io/ignore-resource-updates": _any,
    "argocd.argoproj.io/ignore-default-links": _any,
    "kustomize.toolkit.fluxcd.io/prune": lambda value: value.lower() == "enabled",
    "kustomize.toolkit.fluxcd.io/reconcile": lambda value: value.lower() == "enabled",
    "kustomize.toolkit.fluxcd.io/ssa": lambda value: value.lower() in {"override", "merge"},
    "kustomize.toolkit.fluxcd.io/force": _any,
    "kustomize.toolkit.fluxcd.io/substitute": _any,
    "helm.toolkit.fluxcd.io/driftDetection": _any,
    "helm.sh/chart": _any,
    "helm.sh/hook-weight": _any,
    "helm.sh/hook-delete-policy": _any,
    "helm.sh/resource-policy": lambda value: "keep" not in _words(value),
}
"""Instructions that may be given, with the values that let the object go."""

_RETAIN = "set deletionPolicy: Retain for the whole template"


def _stays(loc: Loc, message: str) -> Finding:
    return Finding(loc=loc, message=message, hint=_RETAIN)
