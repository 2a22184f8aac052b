"""Checks of the counted part of a pod template, before any API server has validated it.

A request body or a file may contain anything there. A checked template can be read as the requirements of one pod, with
every value of its expected type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.pods.pod_references import as_list
from reconciler.core.pods.taints import toleration_faults
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import pod_template_sites
from reconciler.model.kubernetes.workload_kind import EACH, PodTemplate
from reconciler.model.units import parse_quantity, quantity_hint
from reconciler.model.workload import Json
from reconciler.text.digits import is_digits
from reconciler.text.findings import Finding, Loc, shortened

_TOLERATION = ("key", "operator", "value", "effect")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_COMPARING = ("Equal", "Exists", "Gt", "Lt")
_SELECTING = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
"""Effects and operators of tolerations, and operators of node selector terms, of Kubernetes 1.37."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_Check = Callable[[Json, Loc], Iterator[Finding]]


def check_pod_template(manifest: Mapping[str, Json], loc: Loc = (), kinds: Kinds = NO_KINDS) -> Iterator[Finding]:
    """Check the requirements of an object's pods as Kubernetes does; texts with expressions are skipped.

    `kinds` are the WorkloadKinds of the fleet repository. An object without pods has no findings.
    """
    kind = kind_of(manifest, kinds)
    if kind is None:
        return
    findings = [finding for template in kind.templates for finding in _of_template(manifest, template, loc)]
    yield from dict.fromkeys(findings)


def check_pod_patch(patch: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Check the pod spec, labels and annotations in a strategic merge patch as Kubernetes does."""
    stated = _without_directives(patch)
    yield from _at_path(("spec",), _pod)(stated, loc)
    for part in ("labels", "annotations"):
        yield from _at_path(("metadata", part), _texts)(stated, loc)


def _without_directives(value: Json) -> Json:
    """Return what a patch sets, without deletions and merge directives."""
    if isinstance(value, list):
        return [_without_directives(item) for item in value]
    if not isinstance(value, dict):
        return value
    sets = ((key, item) for key, item in value.items() if item is not None and not key.startswith("$"))
    return {key: _without_directives(item) for key, item in sets}


def environment_values(manifest: Mapping[str, Json], kinds: Kinds) -> Iterator[tuple[Loc, Json]]:
    """Yield the values of all environment variables in a workload's pod templates, each once."""
    values: dict[Loc, Json] = {}
    for place in pod_template_sites(manifest, kinds):
        pod = at(manifest, tuple(map(str, place.loc))) if place.loc else None
        if not isinstance(pod, dict):
            continue
        containers: list[tuple[Loc, Json]] = [
            ((part, index), container)
            for part in ("initContainers", "containers")
            for index, container in enumerate(as_list(pod.get(part)))
        ]
        containers += [((name,), pod.get(name)) for name in place.template.containers]
        for part, container in containers:
            for number, variable in enumerate(as_list(container.get("env")) if isinstance(container, dict) else ()):
                if isinstance(variable, dict):
                    values[(*place.loc, *part, "env", number, "value")] = variable.get("value")
    yield from values.items()


def _of_template(manifest: Mapping[str, Json], template: PodTemplate, loc: Loc) -> Iterator[Finding]:
    def pod(value: Json, where: Loc) -> Iterator[Finding]:
        yield from _pod(value, where)
        for name in template.containers:
            yield from _at_path((name, "resources"), _resources)(value, where)

    for pod_path in (template.spec, template.instead):
        if pod_path:
            yield from _at_path(pod_path, pod)(manifest, loc)
    if template.resources:
        yield from _at_path(template.resources, _check_requirements)(manifest, loc)


def _pod(pod: Json, loc: Loc) -> Iterator[Finding]:
    for field, check in _FIELDS.items():
        yield from check(pod.get(field), (*loc, field))


def _at_path(pod_path: tuple[str, ...], check: _Check) -> _Check:
    """Check the value at a path of mappings, each optional, the item for an index, and each item for a ``*``."""

    def look(value: Json, loc: Loc) -> Iterator[Finding]:
        if pod_path and pod_path[0] == EACH:
            yield from _each_value(_at_path(pod_path[1:], check))(value, loc)
            return
        if pod_path and isinstance(value, list) and is_digits(pod_path[0]):
            index = int(pod_path[0])
            yield from _at_path(pod_path[1:], check)(value[index], (*loc, index))
            return
        yield from _check_mapping(value, loc)
        if pod_path:
            below = value.get(pod_path[0]) if isinstance(value, dict) else None
            yield from _at_path(pod_path[1:], check)(below, (*loc, pod_path[0]))
        elif isinstance(value, dict):
            yield from check(value, loc)

    return look


def _each_value(check: _Check) -> _Check:
    """Check every item of an optional mapping or list."""

    def look(value: Json, loc: Loc) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield from _each_item(check)(value, loc)
            return
        for name, item in value.items():
            yield from check(item, (*loc, name))

    return look


def _each_item(check: _Check) -> _Check:
    """Check every item of an optional list."""

    def look(value: Json, loc: Loc) -> Iterator[Finding]:
        if value is not None and not isinstance(value, list):
            yield from _wrong_type(value, loc, "a list")
        for index, item in enumerate(value) if isinstance(value, list) else ():
            if item is None:
                yield from _wrong_type(item, (*loc, index), "a value")
            else:
                yield from check(item, (*loc, index))

    return look


def _check_mapping(value: Json, loc: Loc) -> Iterator[Finding]:
    if value is not None and not isinstance(value, dict):
        yield from _wrong_type(value, loc, "a mapping")


def _text(value: Json, loc: Loc) -> Iterator[Finding]:
    if not isinstance(value, str):
        yield from _wrong_type(value, loc, "a text")


def _texts(value: Json, loc: Loc) -> Iterator[Finding]:
    """Check a mapping of required texts."""
    for name, item in value.items():
        yield from _text(item, (*loc, name))


def _some_texts(names: tuple[str, ...]) -> _Check:
    """Check optional texts of a mapping."""

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
            yield Finding(loc=(*loc, name), message=shortened(str(error)), hint=quantity_hint(str(amount)))


def _check_word(words: tuple[str, ...], value: Json, loc: Loc) -> Iterator[Finding]:
    """Check an optional text that has to be one of these words."""
    if isinstance(value, str) and value and not has_expression(value) and value not in words:
        message = f"{shortened(value)!r} is nothing that Kubernetes knows here"
        yield Finding(loc=loc, message=message, hint=f"one of {', '.join(words)}")


def _toleration(value: Json, loc: Loc) -> Iterator[Finding]:
    findings = list(_some_texts(_TOLERATION)(value, loc))
    for name, words in (("operator", _COMPARING), ("effect", _EFFECTS)):
        findings += _check_word(words, value.get(name) if isinstance(value, dict) else None, (*loc, name))
    yield from findings
    if findings or not isinstance(value, dict) or any(has_expression(str(value.get(name))) for name in _TOLERATION):
        return
    texts = {name: value.get(name) or "" for name in _TOLERATION}
    for field, message, hint in toleration_faults(**texts, seconds=value.get("tolerationSeconds")):
        yield Finding(loc=(*loc, field), message=message, hint=hint)


def _requirement(value: Json, loc: Loc) -> Iterator[Finding]:
    for name in ("key", "operator"):
        yield from _text(value.get(name), (*loc, name))
    yield from _check_word(_SELECTING, value.get("operator"), (*loc, "operator"))
    yield from _each_item(_text)(value.get("values"), (*loc, "values"))


def _term(value: Json, loc: Loc) -> Iterator[Finding]:
    for name in ("matchExpressions", "matchFields"):
        yield from _each_item(_at_path((), _requirement))(value.get(name), (*loc, name))


def _terms(value: Json, loc: Loc) -> Iterator[Finding]:
    yield from _each_item(_at_path((), _term))(value.get("nodeSelectorTerms"), (*loc, "nodeSelectorTerms"))


def _resources(value: Json, loc: Loc) -> Iterator[Finding]:
    for name in ("limits", "requests"):
        yield from _at_path((), _quantities)(value.get(name), (*loc, name))


def _check_requirements(value: Json, loc: Loc) -> Iterator[Finding]:
    """Check requirements outside of the pod spec, which may name the GPU type and hold custom resources."""
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
"""Checks by field of a pod spec."""


def _wrong_type(value: Json, loc: Loc, what: str) -> Iterator[Finding]:
    """Yield a finding about a value of the wrong type; an expression may still become the right one."""
    if isinstance(value, str) and has_expression(value):
        return
    if isinstance(value, dict | list):
        stands = "a mapping" if isinstance(value, dict) else "a list"
    else:
        stands = "nothing" if value is None else repr(shortened(str(value)))
    hint = "quote it" if what == "a text" and isinstance(value, int | float) else f"try {_EXAMPLES[what]}"
    yield Finding(loc=loc, message=f"Kubernetes takes {what} here, not {stands}", hint=hint)


_EXAMPLES = {"a mapping": "name: value", "a list": "a list of one", "a text": "one name", "a value": "leaving it out"}
