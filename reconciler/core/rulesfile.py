"""The rules of a shape's pods about their neighbours, as placement.yaml holds them in the replica's JSON."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from reconciler.model.neighbours import Evenly, HostPort, LabelRequirement, PodRule, PodRules
from reconciler.model.workload import Json

_CONFIG = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)


def write_rules(rules: PodRules) -> Json:
    """Write rules for JSON; what there is none of is left out."""
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
    return {
        "key": rule.key,
        "namespaces": list(rule.namespaces),
        "selector": [{"key": one.key, "operator": one.operator, "values": list(one.values)} for one in rule.selector],
        "wide": rule.wide,
    }


class LabelRequirementRecord(BaseModel):
    """What a label of a pod has to be."""

    model_config = _CONFIG
    key: str
    operator: str
    values: list[str] = []


class PodRuleRecord(BaseModel):
    """Whom a rule is about, and the label whose values are its domains."""

    model_config = _CONFIG
    key: str
    selector: list[LabelRequirementRecord]
    namespaces: list[str] = []
    wide: bool = False

    def value(self) -> PodRule:
        """Return the value that the rest of the program uses."""
        selector, namespaces = _selector(self.selector), tuple(self.namespaces)
        return PodRule(key=self.key, selector=selector, namespaces=namespaces, wide=self.wide)


class EvenSpreadRecord(PodRuleRecord):
    """An even spread."""

    max_skew: int = Field(ge=1)
    min_domains: int = Field(default=1, ge=1)
    heeds_affinity: bool = True
    heeds_taints: bool = False

    def value(self) -> Evenly:
        """Return the value that the rest of the program uses."""
        return Evenly(
            key=self.key,
            selector=_selector(self.selector),
            namespaces=tuple(self.namespaces),
            wide=self.wide,
            max_skew=self.max_skew,
            min_domains=self.min_domains,
            heeds_affinity=self.heeds_affinity,
            heeds_taints=self.heeds_taints,
        )


class HostPortRecord(BaseModel):
    """A port that a pod takes of its node."""

    model_config = _CONFIG
    port: int
    protocol: str
    address: str


class PodRulesRecord(BaseModel):
    """What each pod demands of the pods beside it."""

    model_config = _CONFIG
    labels: dict[str, str] = {}
    namespace: str = ""
    apart: list[PodRuleRecord] = []
    together: list[PodRuleRecord] = []
    evenly: list[EvenSpreadRecord] = []
    ports: list[HostPortRecord] = []

    def value(self) -> PodRules:
        """Return the value that the rest of the program uses."""
        return PodRules(
            labels=tuple(sorted(self.labels.items())),
            namespace=self.namespace,
            apart=tuple(rule.value() for rule in self.apart),
            together=tuple(rule.value() for rule in self.together),
            evenly=tuple(rule.value() for rule in self.evenly),
            ports=tuple(HostPort(port=one.port, protocol=one.protocol, address=one.address) for one in self.ports),
        )


def _selector(requirements: Iterable[LabelRequirementRecord]) -> tuple[LabelRequirement, ...]:
    return tuple(LabelRequirement(key=one.key, operator=one.operator, values=tuple(one.values)) for one in requirements)
