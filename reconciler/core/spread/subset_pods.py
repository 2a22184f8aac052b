"""What a subset of a WorkloadSpread makes of a pod template, and which ordinals of a StatefulSet are its own.

As OpenKruise injects it into pods (docs/reference/workloadspread.md, "Changes to a pod"), in this order: tolerations
and preferred terms are appended; the required term becomes the only one, or goes into every term that is there; the
patch comes last, and so wins; an annotation names the spread and the subset. Two things are otherwise: what a Cluster
decides by its labels or its name is no matter of nodes any more and is left out, and where nothing is injected no empty
affinity is made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.spread.matching import node_requirements
from reconciler.core.workloads.node_affinity import meets_terms
from reconciler.core.workloads.strategic_merge import Unmergeable, leftover_directive, merge
from reconciler.model.policy import Cluster
from reconciler.model.scheduling import NodeRequirement, NodeTerm, Toleration
from reconciler.model.workload import Json
from reconciler.model.workload_spread import PreferredTerm, Subset, WorkloadSpread
from reconciler.text.findings import Loc

MATCHED_ANNOTATION = "apps.kruise.io/matched-workloadspread"
_STATEFUL_SETS = frozenset({("apps", "StatefulSet"), ("apps.kruise.io", "StatefulSet")})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TERMS = "nodeSelectorTerms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What is injected into the pods of a subset on one of its clusters: as far as it is a matter of nodes.

    `start` is the first ordinal of its own where the spread's target is a StatefulSet, else 0.
    """

    spread: WorkloadSpread
    subset: Subset
    required: tuple[NodeRequirement, ...] = ()
    preferred: tuple[PreferredTerm, ...] = ()
    start: int = 0

    @property
    def changes(self) -> bool:
        """Whether anything but the annotation comes of it."""
        return bool(self.subset.patch or self.subset.tolerations or self.required or self.preferred or self.start)

    @property
    def called(self) -> str:
        """How it is told: ``subset spot of WorkloadSpread llm/pools``."""
        return f"subset {self.subset.name} of WorkloadSpread {self.spread.id}"

    @property
    def annotation(self) -> dict[str, str]:
        """The annotation by which OpenKruise's tools know a pod's subset."""
        named = {"name": self.spread.name, "subset": self.subset.name}
        return {MATCHED_ANNOTATION: json.dumps(named, separators=(",", ":"))}


def subset_of(spread: WorkloadSpread, name: str) -> Subset | None:
    """Find a subset by name."""
    return next((subset for subset in spread.subsets if subset.name == name), None)


def injection(spread: WorkloadSpread, subset: Subset, cluster: Cluster, *, start: int | None = None) -> Injection:
    """Say what a subset injects into pods on one of its clusters; what has ordinals already has its `start`.

    Raises ValueError where the pods would have no ordinals that are the subset's own.
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
    """Tell whether the pods of a spread's target are numbered, so that its subsets are ranges of ordinals."""
    return (spread.group, spread.target.kind) in _STATEFUL_SETS


def patch_template(template: Mapping[str, Json], injected: Injection) -> dict[str, Json]:
    """Return the pod template of a subset; what is no `metadata` and no `spec` in a patch is not a template's.

    Raises Unmergeable for a patch that cannot be applied, and for a template that is none.
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
    """Return the first ordinal of a subset: as many as the subsets before it may hold come before.

    OpenKruise's ranges shift while a subset is unschedulable; these do not, since every pod behind it would get another
    name. Raises ValueError where a subset before it holds any number, or so many hundredths.
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


def first_ordinal(spread: WorkloadSpread | None, name: str) -> int | None:
    """Return the first ordinal of what is placed for a subset now; None where nothing is numbered, or none is left."""
    subset = None if spread is None else subset_of(spread, name)
    if spread is None or subset is None or not has_ordinals(spread):
        return None
    try:
        return ordinals_start(spread, subset)
    except ValueError:
        return None


def _patched_parts(subset: Subset) -> tuple[str, ...]:
    return tuple(key for key in subset.patch if key in {"metadata", "spec"})


def _node_preference(preferred: PreferredTerm, cluster: Cluster) -> PreferredTerm | None:
    """Return what of a preferred term is a matter of nodes; None where nothing is, or the cluster does not meet it."""
    term = preferred.term
    decided = NodeTerm(labels=tuple(label for label in term.labels if label.key in cluster.labels), fields=term.fields)
    if (decided.labels or decided.fields) and not meets_terms((decided,), cluster.labels, cluster.name):
        return None
    left = tuple(label for label in term.labels if label.key not in cluster.labels)
    return replace(preferred, term=NodeTerm(labels=left)) if left else None


def _with_terms(affinity: Json, injected: Injection) -> dict[str, Json]:
    """Add terms to an affinity, of which any part may be missing."""
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


def _narrowed_term(term: Json, required: Sequence[NodeRequirement], loc: Loc) -> dict[str, Json]:
    own = _mapping(term, (*loc, _REQUIRED, _TERMS))
    own_expressions = _list(own.get("matchExpressions"), (*loc, _REQUIRED, _TERMS, "matchExpressions"))
    return {**own, "matchExpressions": [*own_expressions, *_expressions(required)["matchExpressions"]]}


def _expressions(required: Sequence[NodeRequirement]) -> dict[str, Json]:
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
