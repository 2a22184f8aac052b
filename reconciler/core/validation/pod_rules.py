"""The rules on a pod that no schema states: what the validation of Kubernetes refuses beyond types and words.

Read from Kubernetes' own code (https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/core/validation,
``ValidatePodSpec``; ``pkg/apis/apps/validation`` and ``pkg/apis/batch/validation`` for the rules of a kind). OpenKruise
runs the same validation on the pods of each subset. Values of a wrong type are left to `values`, and texts with an
expression pass until they are rendered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.pods.label_syntax import is_label_key, is_label_value
from reconciler.core.validation import kubernetes
from reconciler.model.ids import is_name
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened

_CONTAINERS = ("initContainers", "containers")
_LASTING = ("apps/", "/ReplicationController")
"""How the names ``group/Kind`` begin whose pods run until they are deleted."""

_ENDING = ("batch/",)
"""How those begin whose pods end."""

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_LEAST: Mapping[str, int] = {"activeDeadlineSeconds": 1, "terminationGracePeriodSeconds": 0}
_MAX_PORT = 65535
_PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[ -<>-~]+")
"""Printable ASCII characters without the equals sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodJudgement:
    """How strictly a pod is checked."""

    # Whether expressions have been rendered already, so that braces are only braces.
    rendered: bool
    # Whether a controller completes the pod, so that nothing is required of it.
    partial: bool
    # The object's kind, ``group/Kind``.
    kind: str
    # Volumes that the controller adds, such as those of claim templates.
    claims: frozenset[str] = frozenset()

    def is_open(self, value: Json) -> bool:
        """Return whether an expression decides a value."""
        return not self.rendered and isinstance(value, str) and has_expression(value)


def check_pod(pod: Mapping[str, Json], loc: Loc, judgement: PodJudgement) -> Iterator[Finding]:
    """Check a pod spec at `loc`; of a list or mapping of another type there are no findings."""
    yield from _check_spec(pod, loc, judgement)
    yield from check_labels(pod.get("nodeSelector"), (*loc, "nodeSelector"), judgement)
    yield from _check_volumes(pod, loc, judgement)
    containers = [
        (container, (*loc, part, index)) for part in _CONTAINERS for index, container in _objects(pod.get(part))
    ]
    yield from _check_names([(container.get("name"), (*place, "name")) for container, place in containers], judgement)
    for container, place in containers:
        yield from _check_container(container, place, judgement)
        yield from _check_mounts(container, pod, place, judgement)


def check_labels(labels: Json, loc: Loc, judgement: PodJudgement) -> Iterator[Finding]:
    """Check the keys and values of labels, or of what selects by labels."""
    for key, value in labels.items() if isinstance(labels, Mapping) else ():
        if not judgement.is_open(key) and not is_label_key(key):
            message = f"{shortened(key)!r} cannot be the name of a label"
            yield Finding(loc=(*loc, key), message=message, hint="try one like topology.kubernetes.io/zone")
        elif isinstance(value, str) and not judgement.is_open(value) and not is_label_value(value):
            message = f"{shortened(value)!r} cannot be the value of a label"
            yield Finding(loc=(*loc, key), message=message, hint="try letters, digits, '-', '_' and '.', at most 63")


def _check_spec(pod: Mapping[str, Json], loc: Loc, judgement: PodJudgement) -> Iterator[Finding]:
    if pod.get("containers") == []:
        yield Finding(loc=(*loc, "containers"), message="a pod has at least one container", hint="keep one of them")
    kind, policy = judgement.kind.partition("/")[2], pod.get("restartPolicy")
    is_lasting, is_ending = judgement.kind.startswith(_LASTING), judgement.kind.startswith(_ENDING)
    if is_ending and policy is None:
        message = f"restartPolicy is required in the pods of a {kind}"
        yield Finding(loc=loc, message=message, hint="try OnFailure or Never")
    # A word that Kubernetes does not know is told by the schema.
    elif (is_ending and policy == "Always") or (is_lasting and policy in ("OnFailure", "Never")):
        message = f"the pods of a {kind} have no restartPolicy {policy}"
        hint = "try OnFailure or Never" if is_ending else "try Always"
        yield Finding(loc=(*loc, "restartPolicy"), message=message, hint=hint)
    if is_lasting and _number(pod.get("activeDeadlineSeconds")) is not None:
        message = f"the pods of a {kind} have no deadline"
        yield Finding(loc=(*loc, "activeDeadlineSeconds"), message=message, hint="leave it out")
    for name, least in _LEAST.items():
        number = _number(pod.get(name))
        if number is not None and number < least:
            yield Finding(loc=(*loc, name), message=f"{number} is less than {least}", hint=f"try {least}")
    if pod.get("dnsPolicy") == "None" and not pod.get("dnsConfig"):
        message = "dnsPolicy None needs the nameservers of a dnsConfig"
        yield Finding(loc=(*loc, "dnsPolicy"), message=message, hint="try dnsConfig: {nameservers: [10.0.0.10]}")
    if pod.get("hostPID") is True and pod.get("shareProcessNamespace") is True:
        message = "hostPID and shareProcessNamespace cannot both be true"
        yield Finding(loc=(*loc, "shareProcessNamespace"), message=message, hint="leave one of them out")


def _check_volumes(pod: Mapping[str, Json], loc: Loc, judgement: PodJudgement) -> Iterator[Finding]:
    volumes = [(volume, (*loc, "volumes", index)) for index, volume in _objects(pod.get("volumes"))]
    yield from _check_names([(volume.get("name"), (*place, "name")) for volume, place in volumes], judgement)
    for volume, place in volumes:
        yield from _check_union(volume, "core.v1.Volume", place, judgement, required=False)


def _check_names(names: list[tuple[Json, Loc]], judgement: PodJudgement) -> Iterator[Finding]:
    """Check names that are labels of DNS, each once in its list."""
    texts = [(name, loc) for name, loc in names if isinstance(name, str) and not judgement.is_open(name)]
    seen = set[str]()
    for name, loc in texts:
        if not is_name(name):
            message = f"{shortened(name)!r} cannot be a name here"
            yield Finding(loc=loc, message=message, hint="a-z, 0-9 and dashes, at most 63 characters")
        elif name in seen:
            yield Finding(loc=loc, message=f"{name!r} is there twice", hint="give it another name")
        seen.add(name)


def _check_container(container: Mapping[str, Json], loc: Loc, judgement: PodJudgement) -> Iterator[Finding]:
    yield from _check_ports(container, loc, judgement)
    for index, variable in _objects(container.get("env")):
        yield from _check_variable(variable, (*loc, "env", index), judgement)
    for name in _PROBES:
        probe = container.get(name)
        if isinstance(probe, Mapping):
            yield from _check_union(probe, "core.v1.Probe", (*loc, name), judgement, required=True)
            threshold = _number(probe.get("successThreshold"))
            if name != "readinessProbe" and threshold not in (None, 0, 1):
                place = (*loc, name, "successThreshold")
                yield Finding(loc=place, message=f"a {name} succeeds at once, so that it is 1", hint="try 1")
    lifecycle = container.get("lifecycle")
    hooks = lifecycle if isinstance(lifecycle, Mapping) else {}
    for name in ("postStart", "preStop"):
        if isinstance(hook := hooks.get(name), Mapping):
            yield from _check_union(
                hook, "core.v1.LifecycleHandler", (*loc, "lifecycle", name), judgement, required=True
            )


def _check_ports(container: Mapping[str, Json], loc: Loc, judgement: PodJudgement) -> Iterator[Finding]:
    seen = set[str]()
    for index, port in _objects(container.get("ports")):
        place = (*loc, "ports", index)
        for field, least in (("containerPort", 1), ("hostPort", 0)):
            number = _number(port.get(field))
            if number is not None and not least <= number <= _MAX_PORT:
                yield Finding(loc=(*place, field), message=f"{number} is no port", hint=f"1 to {_MAX_PORT}")
        name = port.get("name")
        if not isinstance(name, str) or not name or judgement.is_open(name):
            continue
        if not _PORT_NAME.fullmatch(name):
            hint = "a-z, 0-9 and single dashes, with a letter, at most 15 characters"
            yield Finding(loc=(*place, "name"), message=f"{shortened(name)!r} cannot be the name of a port", hint=hint)
        elif name in seen:
            yield Finding(loc=(*place, "name"), message=f"{name!r} is there twice", hint="give it another name")
        seen.add(name)


def _check_variable(variable: Mapping[str, Json], loc: Loc, judgement: PodJudgement) -> Iterator[Finding]:
    name, source = variable.get("name"), variable.get("valueFrom")
    if isinstance(name, str) and not judgement.is_open(name) and not _VARIABLE.fullmatch(name):
        message = f"{shortened(name)!r} cannot be the name of a variable"
        yield Finding(loc=(*loc, "name"), message=message, hint="printable ASCII characters without '='")
    if not isinstance(source, Mapping):
        return
    if variable.get("value") not in (None, "") and not judgement.is_open(variable.get("value")):
        yield Finding(loc=loc, message="a variable has a value or valueFrom, not both", hint="leave one of them out")
    yield from _check_union(source, "core.v1.EnvVarSource", (*loc, "valueFrom"), judgement, required=True)


def _check_union(
    value: Mapping[str, Json], definition: str, loc: Loc, judgement: PodJudgement, *, required: bool
) -> Iterator[Finding]:
    """Check that an object has at most one of the objects that its definition lists, and one where it is required."""
    fields = kubernetes.definition(definition).fields
    names = [name for name, schema in fields.items() if schema.type == "object"]
    stated = [name for name in names if value.get(name) is not None]
    given = [name for name in stated if not judgement.is_open(value[name])]
    if len(given) > 1:
        message = f"{' and '.join(given)} exclude each other"
        yield Finding(loc=(*loc, given[-1]), message=message, hint="leave all but one of them out")
    # A misspelt field is told once, as such.
    elif required and not judgement.partial and not stated and value.keys() <= fields.keys():
        yield Finding(loc=loc, message=f"one of {', '.join(names)} is required")


def _check_mounts(
    container: Mapping[str, Json], pod: Mapping[str, Json], loc: Loc, judgement: PodJudgement
) -> Iterator[Finding]:
    mounts = [(mount, (*loc, "volumeMounts", index)) for index, mount in _objects(container.get("volumeMounts"))]
    paths = Counter(mount.get("mountPath") for mount, _ in mounts if isinstance(mount.get("mountPath"), str))
    for mount, place in mounts:
        path = mount.get("mountPath")
        if isinstance(path, str) and paths[path] > 1 and not judgement.is_open(path):
            paths[path] = 0
            yield Finding(loc=(*place, "mountPath"), message=f"{shortened(path)!r} is mounted twice")
    volumes = [volume.get("name") for _, volume in _objects(pod.get("volumes"))]
    if judgement.partial or any(not isinstance(name, str) or judgement.is_open(name) for name in volumes):
        return
    for mount, place in mounts:
        name = mount.get("name")
        if isinstance(name, str) and not judgement.is_open(name) and name not in {*volumes, *judgement.claims}:
            yield Finding(loc=(*place, "name"), message=f"there is no volume {shortened(name)!r}")


def _objects(items: Json) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """Yield the objects of a list, each with its index."""
    for index, item in enumerate(items) if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            yield index, item


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
