"""Pod templates of a WorkloadSpread subset, and its ordinals of a StatefulSet.

As OpenKruise injects a subset into pods (docs/background/upstream/workloadspread.md, "Changes to a pod"), in this
order: tolerations and preferred terms are appended; the required term becomes the only one, or is added to every
existing term; the patch comes last, and so wins; an annotation names the spread and the subset. Two things differ:
requirements that a Cluster's labels or name decide are no node requirements and are left out, and no empty affinity is
added where nothing is injected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.pods.strategic_merge import Unmergeable, leftover_directive, merge
from reconciler.core.spread.subset_selection import node_requirements
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.kubernetes.workload_spread import PreferredTerm, Subset, WorkloadSpread
from reconciler.model.policy import BurstPolicy, Cluster
from reconciler.model.workload import Json
from reconciler.text.findings import Loc

MATCHED_ANNOTATION = "apps.kruise.io/matched-workloadspread"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TERMS = "nodeSelectorTerms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """Changes of a subset to pods on one of its clusters."""

    spread: WorkloadSpread
    subset: Subset
    required: tuple[Requirement, ...] = ()
    """Node requirements of its required term."""
    preferred: tuple[PreferredTerm, ...] = ()
    """Node requirements of its preferred terms."""
    start: int = 0
    """First ordinal of the subset where the spread's target is a StatefulSet, else 0."""

    @property
    def changes(self) -> bool:
        """Whether it changes more than the annotation."""
        return bool(self.subset.patch or self.subset.tolerations or self.required or self.preferred or self.start)

    @property
    def called(self) -> str:
        """The name in messages: ``subset spot of WorkloadSpread llm/pools``."""
        return f"subset {self.subset.name} of WorkloadSpread {self.spread.id}"

    @property
    def annotation(self) -> dict[str, str]:
        """The annotation by which OpenKruise's tools find a pod's subset."""
        named = {"name": self.spread.name, "subset": self.subset.name}
        return {MATCHED_ANNOTATION: json.dumps(named, separators=(",", ":"))}


def injection(spread: WorkloadSpread, subset: Subset, cluster: Cluster, *, start: int | None = None) -> Injection:
    """Return what a subset injects into pods on one of its clusters; `start` overrides its first ordinal.

    Raises ValueError where the subset would have no ordinals.
    """
    return Injection(
        spread=spread,
        subset=subset,
        required=node_requirements(subset, cluster),
        preferred=tuple(
            preferred_term
            for term in subset.preferred
            if (preferred_term := _node_preference(term, cluster)) is not None
        ),
        start=start if start is not None else ordinals_start(spread, subset) if has_ordinals(spread) else 0,
    )


def has_ordinals(spread: WorkloadSpread) -> bool:
    """Return whether the target's pods are numbered, so that subsets are ranges of ordinals."""
    kind = BUILT_IN.get(f"{spread.group}/{spread.target.kind}")
    return kind is not None and kind.ordinals


def patch_template(template: Mapping[str, Json], injected: Injection) -> dict[str, Json]:
    """Return the pod template of a subset; only `metadata` and `spec` of a patch apply to a template.

    Raises Unmergeable for a patch that cannot be applied, and for a malformed template.
    """
    spec = dict(_mapping(template.get("spec"), ("spec",)))
    if injected.subset.tolerations:
        spec["tolerations"] = [
            *_list(spec.get("tolerations"), ("spec", "tolerations")),
            *map(_toleration, injected.subset.tolerations),
        ]
    if injected.required or injected.preferred:
        spec["affinity"] = _with_terms(spec.get("affinity"), injected)
    patched = merge(
        {**template, "spec": spec}, {key: injected.subset.patch[key] for key in _patched_parts(injected.subset)}
    )
    if left := leftover_directive(patched):
        raise Unmergeable(left, "Kubernetes leaves it where it stands, since it is in something new")
    after = _mapping(patched.get("spec"), ("spec",))
    if after.get("priorityClassName") != spec.get("priorityClassName"):
        patched["spec"] = {key: value for key, value in after.items() if key != "priority"}
    metadata = _mapping(patched.get("metadata"), ("metadata",))
    own = _mapping(metadata.get("annotations"), ("metadata", "annotations"))
    return {**patched, "metadata": {**metadata, "annotations": {**own, **injected.annotation}}}


def ordinals_start(spread: WorkloadSpread, subset: Subset) -> int:
    """Return the first ordinal of a subset: the sum of the replicas that earlier subsets may hold.

    OpenKruise's ranges shift while a subset is unschedulable; these do not, since every later pod would get another
    name. Raises ValueError where an earlier subset is unbounded, or bounded by a percentage.
    """
    start = 0
    for earlier in spread.subsets[: spread.subsets.index(subset)]:
        if earlier.most is None:
            raise ValueError(f"subset {earlier.name} before it has no maxReplicas, so that no ordinal is left for it")
        if earlier.most.percent:
            raise ValueError(
                f"maxReplicas of subset {earlier.name} before it is a percentage, and ordinals need a number"
            )
        start += earlier.most.number
    return start


def first_ordinal(policy: BurstPolicy, name: str) -> int | None:
    """Return the first ordinal of new placements of a subset; None without ordinals, or where none is left."""
    spread, subset = policy.spread, policy.subset(name)
    if spread is None or subset is None or not has_ordinals(spread):
        return None
    try:
        return ordinals_start(spread, subset)
    except ValueError:
        return None


def _patched_parts(subset: Subset) -> tuple[str, ...]:
    return tuple(key for key in subset.patch if key in {"metadata", "spec"})


def _node_preference(preferred: PreferredTerm, cluster: Cluster) -> PreferredTerm | None:
    """Return the node part of a preferred term; None without any, or where the cluster does not meet the rest."""
    left = preferred.term.given(cluster.labels, cluster.name)
    return None if left is None or left.is_empty else replace(preferred, term=left)


def _with_terms(affinity: Json, injected: Injection) -> dict[str, Json]:
    """Add terms to an affinity, any part of which may be missing."""
    loc: Loc = ("spec", "affinity")
    whole = _mapping(affinity, loc)
    loc = (*loc, "nodeAffinity")
    node = dict(_mapping(whole.get("nodeAffinity"), loc))
    if injected.preferred:
        preferred = [
            {"weight": preferred_term.weight, "preference": _expressions(preferred_term.term.labels)}
            for preferred_term in injected.preferred
        ]
        node[_PREFERRED] = [*_list(node.get(_PREFERRED), (*loc, _PREFERRED)), *preferred]
    if injected.required:
        selector = _mapping(node.get(_REQUIRED), (*loc, _REQUIRED))
        terms = _list(selector.get(_TERMS), (*loc, _REQUIRED, _TERMS))
        node[_REQUIRED] = {**selector, _TERMS: [_narrowed_term(term, injected.required, loc) for term in terms or [{}]]}
    return {**whole, "nodeAffinity": node}


def _narrowed_term(term: Json, required: Sequence[Requirement], loc: Loc) -> dict[str, Json]:
    own = _mapping(term, (*loc, _REQUIRED, _TERMS))
    own_expressions = _list(own.get("matchExpressions"), (*loc, _REQUIRED, _TERMS, "matchExpressions"))
    return {**own, "matchExpressions": [*own_expressions, *_expressions(required)["matchExpressions"]]}


def _expressions(required: Sequence[Requirement]) -> dict[str, Json]:
    return {
        "matchExpressions": [
            {
                "key": requirement.key,
                "operator": requirement.operator,
                **({"values": [*requirement.values]} if requirement.values else {}),
            }
            for requirement in required
        ]
    }


def _toleration(toleration: Toleration) -> dict[str, Json]:
    stated = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    fields: dict[str, Json] = {field: text for field, text in stated.items() if text}
    return fields if toleration.seconds is None else {**fields, "tolerationSeconds": toleration.seconds}


def _mapping(value: Json, loc: Loc) -> Mapping[str, Json]:
    if value is not None and not isinstance(value, Mapping):
        raise Unmergeable(loc, "is no mapping")
    return value or {}


def _list(value: Json, loc: Loc) -> list[Json]:
    if value is not None and not isinstance(value, list):
        raise Unmergeable(loc, "is no list")
    return value or []
