"""The shape of a replica in placement.yaml: one annotation with canonical JSON, pod rules included.

Fields newer than the first format are left out if the shape does not need them: equal shapes are equal bytes, also
beside those of older versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from reconciler.core.schema.strict_model import refusal
from reconciler.model.capacity import WHOLE, DeviceOption, DeviceRequest, ReplicaShape
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import HostPort, PodRule, PodRules, Toleration, TopologySpreadConstraint
from reconciler.model.units import Resources, format_quantity, parse_quantity
from reconciler.model.workload import Json
from reconciler.text.findings import dotted

_CONFIG = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)


def write_rules(rules: PodRules) -> Json:
    """Write pod rules as JSON; empty parts are left out."""
    document: dict[str, Json] = {
        "labels": dict(rules.labels),
        "namespace": rules.namespace,
        "apart": [_rule(rule) for rule in rules.apart],
        "together": [_rule(rule) for rule in rules.together],
        "evenly": [
            {
                **_rule(rule),
                "maxSkew": rule.max_skew,
                "minDomains": rule.min_domains,
                "heedsAffinity": rule.heeds_affinity,
                "heedsTaints": rule.heeds_taints,
            }
            for rule in rules.evenly
        ],
        "ports": [port._asdict() for port in rules.ports],
    }
    return {key: value for key, value in document.items() if value}


def _rule(rule: PodRule) -> dict[str, Json]:
    document: dict[str, Json] = {
        "key": rule.key,
        "namespaces": list(rule.namespaces),
        "selector": _requirements(rule.selector),
        "wide": rule.wide,
    }
    if rule.namespace_selector is not None:
        document["namespaceSelector"] = _requirements(rule.namespace_selector)
    if rule.itself is not True:
        document["itself"] = rule.itself
    return document


class LabelRequirementRecord(BaseModel):
    """A requirement on a label of a pod."""

    model_config = _CONFIG
    key: str
    operator: str
    values: list[str] = []


class PodRuleRecord(BaseModel):
    """The pods that a rule selects, and the label whose values are its domains."""

    model_config = _CONFIG
    key: str
    selector: list[LabelRequirementRecord]
    namespaces: list[str] = []
    namespace_selector: list[LabelRequirementRecord] | None = None
    wide: bool = False
    itself: bool | None = True

    def value(self) -> PodRule:
        """Return the model's value."""
        return PodRule(
            key=self.key,
            selector=_selector(self.selector),
            namespaces=tuple(self.namespaces),
            namespace_selector=self._namespace_selector,
            wide=self.wide,
            itself=self.itself,
        )

    @property
    def _namespace_selector(self) -> tuple[Requirement, ...] | None:
        return None if self.namespace_selector is None else _selector(self.namespace_selector)


class EvenSpreadRecord(PodRuleRecord):
    """An even spread."""

    max_skew: int = Field(ge=1)
    min_domains: int = Field(default=1, ge=1)
    heeds_affinity: bool = True
    heeds_taints: bool = False

    def value(self) -> TopologySpreadConstraint:
        """Return the model's value."""
        return TopologySpreadConstraint(
            key=self.key,
            selector=_selector(self.selector),
            namespaces=tuple(self.namespaces),
            namespace_selector=self._namespace_selector,
            wide=self.wide,
            itself=self.itself,
            max_skew=self.max_skew,
            min_domains=self.min_domains,
            heeds_affinity=self.heeds_affinity,
            heeds_taints=self.heeds_taints,
        )


class HostPortRecord(BaseModel):
    """A host port of a pod."""

    model_config = _CONFIG
    port: int
    protocol: str
    address: str


class PodRulesRecord(BaseModel):
    """The demands of each pod on the other pods around it."""

    model_config = _CONFIG
    labels: dict[str, str] = {}
    namespace: str = ""
    apart: list[PodRuleRecord] = []
    together: list[PodRuleRecord] = []
    evenly: list[EvenSpreadRecord] = []
    ports: list[HostPortRecord] = []

    def value(self) -> PodRules:
        """Return the model's value."""
        return PodRules(
            labels=tuple(sorted(self.labels.items())),
            namespace=self.namespace,
            apart=tuple(rule.value() for rule in self.apart),
            together=tuple(rule.value() for rule in self.together),
            evenly=tuple(rule.value() for rule in self.evenly),
            ports=tuple(HostPort(port=port.port, protocol=port.protocol, address=port.address) for port in self.ports),
        )


def _selector(requirements: Iterable[LabelRequirementRecord]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(key=requirement.key, operator=requirement.operator, values=tuple(requirement.values))
        for requirement in requirements
    )


_CONFIG_replicafile = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)
_SHAPES = 4096
"""Bound on cached replica shapes: a workload has one, which its placements share."""


def write_shape(shape: ReplicaShape) -> str:
    """Write a replica's shape as canonical JSON: keys sorted, no spaces."""
    document: dict[str, Json] = {
        "groupSize": shape.group_size,
        "nodeSelector": dict(shape.node_selector),
        "requests": {name: format_quantity(amount) for name, amount in shape.requests.amounts.items()},
        "tolerations": [
            {"effect": item.effect, "key": item.key, "operator": item.operator, "value": item.value}
            for item in shape.tolerations
        ],
    }
    if shape.node_terms:
        document["nodeTerms"] = [
            {"fields": _requirements(term.fields), "labels": _requirements(term.labels)} for term in shape.node_terms
        ]
    if shape.devices:
        document["devices"] = [[_option(option) for option in request.options] for request in shape.devices]
    if shape.apart:
        document["apart"] = True
    if shape.rules is not None:
        document["rules"] = write_rules(shape.rules)
    if shape.obstacle:
        document["obstacle"] = shape.obstacle
    if shape.gpu_share != WHOLE:
        document["gpuShare"] = str(shape.gpu_share)
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=_SHAPES)
def read_shape(text: str) -> ReplicaShape:
    """Read a replica's shape; equal texts give the same value, so that many placements share it."""
    try:
        return ReplicaRecord.model_validate_json(text).value()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = dotted(first["loc"])
        raise refusal(f"is no replica's shape: {place}: {first['msg']}" if place else first["msg"]) from error
    except ValueError as error:
        raise refusal(f"is no replica's shape: {error}") from error


def _requirements(requirements: tuple[Requirement, ...]) -> list[Json]:
    return [
        {"key": requirement.key, "operator": requirement.operator, "values": list(requirement.values)}
        for requirement in requirements
    ]


def _option(option: DeviceOption) -> Json:
    return {
        "count": option.count,
        "deviceClass": option.device_class,
        "every": option.every,
        "selectors": list(option.selectors),
    }


class TolerationRecord(BaseModel):
    """A toleration as in a pod spec."""

    model_config = _CONFIG_replicafile
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class NodeRequirementRecord(BaseModel):
    """A requirement on a label or field of a node."""

    model_config = _CONFIG_replicafile
    key: str
    operator: str
    values: list[str] = []

    def value(self) -> Requirement:
        """Return the model's value."""
        return Requirement(key=self.key, operator=self.operator, values=tuple(self.values))


class NodeTermRecord(BaseModel):
    """Requirements that hold together."""

    model_config = _CONFIG_replicafile
    labels: list[NodeRequirementRecord] = []
    fields_: list[NodeRequirementRecord] = Field(default=[], alias="fields")

    def value(self) -> Requirements:
        """Return the model's value."""
        labels, fields = (
            tuple(node_requirement_record.value() for node_requirement_record in side)
            for side in (self.labels, self.fields_)
        )
        return Requirements(labels=labels, fields=fields)


class DeviceOptionRecord(BaseModel):
    """A way to meet a request for devices."""

    model_config = _CONFIG_replicafile
    device_class: str
    selectors: list[str] = []
    count: int = Field(default=1, ge=1)
    every: bool = False

    def value(self) -> DeviceOption:
        """Return the model's value."""
        return DeviceOption(
            device_class=self.device_class, selectors=tuple(self.selectors), count=self.count, every=self.every
        )


class ReplicaRecord(BaseModel):
    """The needs of one replica. Amounts are Kubernetes quantities."""

    model_config = _CONFIG_replicafile
    requests: dict[str, str]
    node_selector: dict[str, str] = {}
    node_terms: list[NodeTermRecord] = []
    tolerations: list[TolerationRecord] = []
    devices: list[list[DeviceOptionRecord]] = []
    group_size: int = Field(default=1, ge=1)
    apart: bool = False
    rules: PodRulesRecord | None = None
    obstacle: str = ""
    gpu_share: str = Field(default="1", pattern=r"^[0-9]{1,6}(/[1-9][0-9]{0,5})?$")

    def value(self) -> ReplicaShape:
        """Return the model's value. Raises ValueError for an invalid quantity."""
        return ReplicaShape(
            requests=Resources(amounts={name: parse_quantity(amount) for name, amount in self.requests.items()}),
            node_selector=self.node_selector,
            node_terms=tuple(term.value() for term in self.node_terms),
            tolerations=tuple(Toleration(**toleration.model_dump()) for toleration in self.tolerations),
            devices=tuple(
                DeviceRequest(options=tuple(option.value() for option in options)) for options in self.devices
            ),
            group_size=self.group_size,
            apart=self.apart,
            rules=None if self.rules is None else self.rules.value(),
            obstacle=self.obstacle,
            gpu_share=Fraction(self.gpu_share),
        )
