"""What is wrong in the part of a pod template that is counted, before any API server has looked at it.

A body or a file may say anything there. What passes here can be read as what one pod needs, and nothing that is read of
it is of a type that it ought not to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import pod_template_sites
from reconciler.model.units import parse_quantity
from reconciler.model.workload import Json
from reconciler.model.workload_kind import EACH, PodTemplate
from reconciler.text.findings import Finding, Loc, shortened

_TOLERATION = ("key", "operator", "value", "effect")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_COMPARING = ("Equal", "Exists", "Gt", "Lt")
_SELECTING = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
"""What Kubernetes 1.37 knows of effects and operators of tolerations, and of operators of node selector terms."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_Check = Callable[[Json, Loc], Iterator[Finding]]


def check_pod_template(manifest: Mapping[str, Json], loc: Loc = (), kinds: Kinds = NO_KINDS) -> Iterator[Finding]:
    """Find what Kubernetes would refuse of what an object's pods need; texts that hold an expression are passed over.

    `kinds` are those that the fleet repository declares. Nothing is found in an object that makes no pods.
    """
    kind = kind_of(manifest, kinds)
    if kind is None:
        return
    findings = [finding for template in kind.templates for finding in _of_template(manifest, template, loc)]
    yield from dict.fromkeys(findings)


def check_pod_patch(patch: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Find what Kubernetes would refuse of what a strategic merge patch has to say of a pod and its labels."""
    stated = _without_directives(patch)
    yield from _at_path(("spec",), _pod)(stated, loc)
    for part in ("labels", "annotations"):
        yield from _at_path(("metadata", part), _texts)(stated, loc)


def _without_directives(value: Json) -> Json:
    """Leave of a patch what it sets: nothing that deletes, and nothing that says how to merge."""
    if isinstance(value, list):
        return [_without_directives(item) for item in value]
    if not isinstance(value, dict):
        return value
    sets = ((key, item) for key, item in value.items() if item is not None and not key.startswith("$"))
    return {key: _without_directives(item) for key, item in sets}


def environment_values(manifest: Mapping[str, Json], kinds: Kinds) -> Iterator[tuple[Loc, Json]]:
    """Yield the values of the environment variables of a workload's containers, of whichever template, each once."""
    values: dict[Loc, Json] = {}
    for place in pod_template_sites(manifest, kinds):
        pod = at(manifest, tuple(map(str, place.loc))) if place.loc else None
        if not isinstance(pod, dict):
            continue
        containers: list[tuple[Loc, Json]] = [
            ((part, index), container)
            for part in ("initContainers", "containers")
            for index, container in enumerate(_list(pod.get(part)))
        ]
        containers += [((name,), pod.get(name)) for name in place.template.containers]
        for part, container in containers:
            for number, variable in enumerate(_list(container.get("env")) if isinstance(container, dict) else ()):
                if isinstance(variable, dict):
                    values[(*place.loc, *part, "env", number, "value")] = variable.get("value")
    yield from values.items()


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _of_template(manifest: Mapping[str, Json], template: PodTemplate, loc: Loc) -> Iterator[Finding]:
    def pod(value: Json, where: Loc) -> Iterator[Finding]:
        yield from _pod(value, where)
        for name in template.containers:
            yield from _at_path((name, "resources"), _resources)(value, where)

    for pod_path in (template.spec, template.instead):
        if pod_path:
            yield from _at_path(pod_path, pod)(manifest, loc)
    if template.resources:
        yield from _at_path(template.resources, _stated)(manifest, loc)


def _pod(pod: Json, loc: Loc) -> Iterator[Finding]:
    for field, check in _FIELDS.items():
        yield from check(pod.get(field), (*loc, field))


def _at_path(pod_path: tuple[str, ...], check: _Check) -> _Check:
    """Check what lies at the end of a way of mappings, of which each may be missing, and of each item for a ``*``."""

    def look(value: Json, loc: Loc) -> Iterator[Finding]:
        if pod_path and pod_path[0] == EACH:
            yield from _each_value(_at_path(pod_path[1:], check))(value, loc)
            return
        yield from _mapping(value, loc)
        if pod_path:
            below = value.get(pod_path[0]) if isinstance(value, dict) else None
            yield from _at_path(pod_path[1:], check)(below, (*loc, pod_path[0]))
        elif isinstance(value, dict):
            yield from check(value, loc)

    return look


def _each_value(check: _Check) -> _Check:
    """Check every item of a mapping or a list, which may be missing."""

    def look(value: Json, loc: Loc) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield from _each_item(check)(value, loc)
            return
        for name, item in value.items():
            yield from check(item, (*loc, name))

    return look


def _each_item(check: _Check) -> _Check:
    """Check every item of a list, which may be missing."""

    def look(value: Json, loc: Loc) -> Iterator[Finding]:
        if value is not None and not isinstance(value, list):
            yield from _wrong_type(value, loc, "a list")
        for index, item in enumerate(value) if isinstance(value, list) else ():
            if item is None:
                yield from _wrong_type(item, (*loc, index), "a value")
            else:
                yield from check(item, (*loc, index))

    return look


def _mapping(value: Json, loc: Loc) -> Iterator[Finding]:
    if value is not None and not isinstance(value, dict):
        yield from _wrong_type(value, loc, "a mapping")


def _text(value: Json, loc: Loc) -> Iterator[Finding]:
    if not isinstance(value, str):
        yield from _wrong_type(value, loc, "a text")


def _texts(value: Json, loc: Loc) -> Iterator[Finding]:
    """Check a mapping of texts, none of which may be missing."""
    for name, item in value.items():
        yield from _text(item, (*loc, name))


def _some_texts(names: tuple[str, ...]) -> _Check:
    """Check these fields of a mapping, each of which may be missing."""

    def look(value: Json, loc: Loc) -> Iterator[Finding]:
        for name in names:
            if value.get(name) is not None:
                yield from _text(value[name], (*loc, name))

    return _at_path((), look)


def _quantities(value: Json, loc: Loc) -> Iterator[Finding]:
    for name, amount in value.items():
        if isinstance(amount, str) and has_expression(amount):
            continue
        try:
            parse_quantity(str(amount))
        except ValueError as error:
            yield Finding(loc=(*loc, name), message=shortened(str(error)), hint="try 1, 500m or 8Gi")


def _one_of(words: tuple[str, ...], value: Json, loc: Loc) -> Iterator[Finding]:
    """Check a text that may be missing, and has to be one of a few words."""
    if isinstance(value, str) and value and not has_expression(value) and value not in words:
        message = f"{shortened(value)!r} is nothing that Kubernetes knows here"
        yield Finding(loc=loc, message=message, hint=f"one of {', '.join(words)}")


def _toleration(value: Json, loc: Loc) -> Iterator[Finding]:
    yield from _some_texts(_TOLERATION)(value, loc)
    for name, words in (("operator", _COMPARING), ("effect", _EFFECTS)):
        yield from _one_of(words, value.get(name) if isinstance(value, dict) else None, (*loc, name))


def _requirement(value: Json, loc: Loc) -> Iterator[Finding]:
    for name in ("key", "operator"):
        yield from _text(value.get(name), (*loc, name))
    yield from _one_of(_SELECTING, value.get("operator"), (*loc, "operator"))
    yield from _each_item(_text)(value.get("values"), (*loc, "values"))


def _term(value: Json, loc: Loc) -> Iterator[Finding]:
    for name in ("matchExpressions", "matchFields"):
        yield from _each_item(_at_path((), _requirement))(value.get(name), (*loc, name))


def _terms(value: Json, loc: Loc) -> Iterator[Finding]:
    yield from _each_item(_at_path((), _term))(value.get("nodeSelectorTerms"), (*loc, "nodeSelectorTerms"))


def _resources(value: Json, loc: Loc) -> Iterator[Finding]:
    for name in ("limits", "requests"):
        yield from _at_path((), _quantities)(value.get(name), (*loc, name))


def _stated(value: Json, loc: Loc) -> Iterator[Finding]:
    """Check requirements that stand apart, which may name the kind of their GPUs and have others set aside."""
    plain = {
        part: {name: amount for name, amount in amounts.items() if name not in _NAMED_APART}
        if isinstance(amounts := value.get(part), dict)
        else amounts
        for part in ("limits", "requests")
    }
    yield from _resources(plain, loc)
    for part in plain:
        yield from _at_path((part, "custom"), _quantities)(value, loc)


_NAMED_APART = frozenset({"gpuType", "custom"})
_CONTAINERS = _each_item(_at_path(("resources",), _resources))
_FIELDS: Mapping[str, _Check] = {
    "nodeSelector": _at_path((), _texts),
    "affinity": _at_path(("nodeAffinity", _REQUIRED), _terms),
    "tolerations": _each_item(_toleration),
    "initContainers": _CONTAINERS,
    "containers": _CONTAINERS,
    "resources": _at_path((), _resources),
    "overhead": _at_path((), _quantities),
}
"""What is read of a pod's spec."""


def _wrong_type(value: Json, loc: Loc, what: str) -> Iterator[Finding]:
    """Say what Kubernetes reads at a place where something else stands; what an expression becomes nobody knows yet."""
    if isinstance(value, str) and has_expression(value):
        return
    if isinstance(value, dict | list):
        stands = "a mapping" if isinstance(value, dict) else "a list"
    else:
        stands = "nothing" if value is None else repr(shortened(str(value)))
    hint = "quote it" if what == "a text" and isinstance(value, int | float) else f"try {_EXAMPLES[what]}"
    yield Finding(loc=loc, message=f"Kubernetes takes {what} here, not {stands}", hint=hint)


_EXAMPLES = {"a mapping": "name: value", "a list": "a list of one", "a text": "one name", "a value": "leaving it out"}
