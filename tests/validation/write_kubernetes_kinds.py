"""Write the kinds of Kubernetes as the compact text of `reconciler/core/validation/kubernetes_kinds.py`.

`make kubernetes-kinds` runs this on the definitions of the package kubernetes-validate, which are those of Kubernetes'
published OpenAPI without enumerations. Descriptions, status and lists of objects are left out. A definition that has
all fields of another states only its other fields.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[2] / "reconciler/core/validation/kubernetes_kinds.py"

_GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
_PREFIX = re.compile(r"^io\.k8s\.(?:api|apimachinery\.pkg\.apis|[a-z-]+\.pkg\.apis|apimachinery\.pkg)\.")
_TYPE = re.compile(r"[^\s\]}]+\.\S+$")
_SHORT = {
    "api.resource.Quantity": "quantity",
    "util.intstr.IntOrString": "int-or-string",
    "meta.v1.Time": "string",
    "meta.v1.MicroTime": "string",
}
_FREE = ("JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray", "RawExtension")
_WORDS = {
    "TCP|UDP|SCTP": ["core.v1.ContainerPort.protocol", "core.v1.ServicePort.protocol"],
    "Always|IfNotPresent|Never": [
        "core.v1.Container.imagePullPolicy",
        "core.v1.EphemeralContainer.imagePullPolicy",
        "core.v1.ImageVolumeSource.pullPolicy",
    ],
    "File|FallbackToLogsOnError": [
        "core.v1.Container.terminationMessagePolicy",
        "core.v1.EphemeralContainer.terminationMessagePolicy",
    ],
    "Always|OnFailure|Never": ["core.v1.PodSpec.restartPolicy"],
    "ClusterFirst|ClusterFirstWithHostNet|Default|None": ["core.v1.PodSpec.dnsPolicy"],
    "Never|PreemptLowerPriority": ["core.v1.PodSpec.preemptionPolicy", "scheduling.v1.PriorityClass.preemptionPolicy"],
    "DoNotSchedule|ScheduleAnyway": ["core.v1.TopologySpreadConstraint.whenUnsatisfiable"],
    "Honor|Ignore": [
        "core.v1.TopologySpreadConstraint.nodeAffinityPolicy",
        "core.v1.TopologySpreadConstraint.nodeTaintsPolicy",
    ],
    "Always|OnRootMismatch": ["core.v1.PodSecurityContext.fsGroupChangePolicy"],
    "Localhost|RuntimeDefault|Unconfined": ["core.v1.SeccompProfile.type", "core.v1.AppArmorProfile.type"],
    "HTTP|HTTPS": ["core.v1.HTTPGetAction.scheme"],
    "Bidirectional|HostToContainer|None": ["core.v1.VolumeMount.mountPropagation"],
    "NoExecute|NoSchedule|PreferNoSchedule": ["core.v1.Taint.effect", "core.v1.Toleration.effect"],
    "Equal|Exists|Gt|Lt": ["core.v1.Toleration.operator"],
    "DoesNotExist|Exists|Gt|In|Lt|NotIn": ["core.v1.NodeSelectorRequirement.operator"],
    "DoesNotExist|Exists|In|NotIn": ["meta.v1.LabelSelectorRequirement.operator"],
    "ClusterIP|ExternalName|LoadBalancer|NodePort": ["core.v1.ServiceSpec.type"],
    "ClientIP|None": ["core.v1.ServiceSpec.sessionAffinity"],
    "Cluster|Local": ["core.v1.ServiceSpec.externalTrafficPolicy", "core.v1.ServiceSpec.internalTrafficPolicy"],
    "PreferDualStack|RequireDualStack|SingleStack": ["core.v1.ServiceSpec.ipFamilyPolicy"],
    "Block|Filesystem": ["core.v1.PersistentVolumeClaimSpec.volumeMode", "core.v1.PersistentVolumeSpec.volumeMode"],
    "OrderedReady|Parallel": ["apps.v1.StatefulSetSpec.podManagementPolicy"],
    "OnDelete|RollingUpdate": ["apps.v1.DaemonSetUpdateStrategy.type"],
    "Recreate|RollingUpdate": ["apps.v1.DeploymentStrategy.type"],
    "Indexed|NonIndexed": ["batch.v1.JobSpec.completionMode"],
    "Failed|TerminatingOrFailed": ["batch.v1.JobSpec.podReplacementPolicy"],
    "Count|FailIndex|FailJob|Ignore": ["batch.v1.PodFailurePolicyRule.action"],
    "Allow|Forbid|Replace": ["batch.v1.CronJobSpec.concurrencyPolicy"],
    "AlwaysAllow|IfHealthyBudget": ["policy.v1.PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy"],
    "ContainerResource|External|Object|Pods|Resource": ["autoscaling.v2.MetricSpec.type"],
    "Delete|Retain": ["apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy.whenDeleted"],
}
"""Fields by their closed enumerations, which the published OpenAPI leaves out: from the API types of 1.37."""

_ENUMERATED = {field: words for words, fields in _WORDS.items() for field in fields}

HEADER = '''\
"""The kinds of Kubernetes {version}, as text that `kubernetes` reads; written by ``make kubernetes-kinds``.

Derived from the OpenAPI of Kubernetes (https://github.com/kubernetes/kubernetes, Apache-2.0) by way of
kubernetes-validate {package} (Apache-2.0). Each block is one definition: its name, of a kind also the apiVersion and
the kind, after ``<`` a definition whose fields it has too, then one line for each field of its own. ``!`` marks a
required field; ``[]`` a list, ``{{}}`` a mapping of texts to values, ``*`` anything, and words parted by bars are the
only ones that a field takes. A type that begins with a dot is of the definition's own group and version.
"""

VERSION = "{version}"
"""The version of Kubernetes."""

DEFINITIONS = """\\
'''


def main(source: Path, package: str) -> None:
    """Write the module from a file of definitions."""
    definitions: Mapping[str, Any] = json.loads(source.read_text())["$defs"]
    names = {name: _short(name) for name in definitions}
    roots = {name: kind for name in definitions if (kind := _kind(names[name], definitions[name]))}
    by_short = {short: name for name, short in names.items()}
    reached: dict[str, str] = {}
    waiting = [*sorted(roots), by_short["meta.v1.ObjectMeta"]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached[name] = _block(names[name], roots.get(name, ""), definitions, name)
            types = (line.rpartition(" ")[2].lstrip("[]{}") for line in reached[name].splitlines()[1:])
            waiting += [by_short[type_name] for type_name in types if type_name in by_short]
    text = "\n".join(
        with_parents([reached[name] for name in sorted(reached, key=lambda name: (name not in roots, names[name]))])
    )
    version = ".".join(package.split(".")[:2])
    TARGET.write_text(HEADER.format(version=version, package=package) + text + '"""\n')


def with_parents(blocks: Sequence[str]) -> list[str]:
    """Let each block name the earlier one with the most fields that it shares, and state only its other fields."""
    fields: dict[str, frozenset[str]] = {}
    written = []
    for block in blocks:
        heading, *lines = block.splitlines()
        name = heading.partition(" ")[0]
        lines = [_TYPE.sub(lambda match, name=name: _relative(match[0], name), line) for line in lines]
        own = frozenset(lines)
        parents = [other for other, theirs in fields.items() if theirs and theirs <= own]
        parent = max(parents, key=lambda other: len(fields[other]), default="")
        fields[name] = own
        rest = [line for line in lines if line not in fields.get(parent, ())]
        written.append("\n".join([f"{heading} <{parent}" if parent else heading, *rest]) + "\n")
    return written


def _relative(type_name: str, name: str) -> str:
    """Shorten the name of a type to what follows the group and version of the definition that uses it."""
    return type_name.removeprefix(name.rpartition(".")[0])


def _short(name: str) -> str:
    return _PREFIX.sub("", name)


def _kind(short: str, definition: Mapping[str, Any]) -> str:
    """Return ``apiVersion Kind`` of an object that can be applied; empty of anything else."""
    fields = definition.get("properties", {})
    written = [
        entry for entry in definition.get(_GROUP_VERSION_KIND, ()) if entry["kind"] == short.rsplit(".", maxsplit=1)[-1]
    ]
    if len(written) != 1 or not {"apiVersion", "kind", "metadata"} <= {*fields}:
        return ""
    if _short(fields["metadata"].get("$ref", "").rpartition("/")[2]) != "meta.v1.ObjectMeta":
        return ""
    group, version, kind = (written[0][part] for part in ("group", "version", "kind"))
    return f"{group}/{version} {kind}" if group else f"{version} {kind}"


def _block(short: str, kind: str, definitions: Mapping[str, Any], name: str) -> str:
    definition = definitions[name]
    required = {*definition.get("required", ())}
    lines = [f"{short} {kind}".rstrip()]
    for field, schema in sorted(definition.get("properties", {}).items()):
        if kind and field in ("apiVersion", "kind"):
            continue
        # API servers refuse an object without a spec where that has a required field, though its schema does not.
        inside = definitions.get(schema.get("$ref", "").rpartition("/")[2], {}).get("required")
        needed = field in required or (field == "spec" and inside)
        free = (kind and field == "status") or field == "managedFields"
        type_text = "*" if free else _type(schema)
        words = _ENUMERATED.get(f"{short}.{field}")
        lines.append(f" {field}{'!' if needed else ''} {words or type_text}")
    return "\n".join(lines) + "\n"


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return _plain(short := _short(schema["$ref"].rpartition("/")[2])) or short
    kinds = schema.get("type", [])
    kind = kinds if isinstance(kinds, str) else next((name for name in kinds if name != "null"), "")
    if kind == "array":
        return "[]" + _type(schema["items"])
    if kind == "object":
        return "{}" + _type(schema["additionalProperties"]) if "additionalProperties" in schema else "{}*"
    return {"integer": "int64" if schema.get("format") == "int64" else "int32"}.get(kind, kind) or "*"


def _plain(short: str) -> str | None:
    """Return the word for a definition that has no fields."""
    if short.rpartition(".")[2] in _FREE:
        return "*"
    return "{}*" if short.endswith("FieldsV1") else _SHORT.get(short)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
