"""Pod affinity, topology spread and host ports as in pod specs, and the pods on a node."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from reconciler.core.pods.pod_affinity import anti_affinity_terms
from reconciler.core.schema.strict_model import Labels, Strict, Text
from reconciler.model.kubernetes.scheduling import HostPort, PodOnNode

_Port = Annotated[int, Field(ge=1, le=65535)]
_Skew = Annotated[int, Field(ge=1, le=2**31 - 1)]


class LabelOperator(StrEnum):
    """Operators of a requirement on a pod's label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class LabelRequirementFile(Strict):
    """The requirement on a label of a pod."""

    key: Text
    operator: Annotated[LabelOperator, Field(strict=False)]
    values: list[str] = Field([])


class LabelSelectorFile(Strict):
    """Pods by their labels."""

    match_labels: Labels = Field({})
    match_expressions: list[LabelRequirementFile] = Field([])


class PodAffinityTermFile(Strict):
    """A required term of pod affinity or anti-affinity, as a pod spec has it."""

    topology_key: Text
    label_selector: LabelSelectorFile | None = None
    namespaces: list[str] = Field([])
    namespace_selector: LabelSelectorFile | None = Field(
        None, description="Counted if it is empty, or asks for `kubernetes.io/metadata.name`; else it may be any."
    )
    match_label_keys: list[str] = Field([])
    mismatch_label_keys: list[str] = Field(
        [], description="Of a pod on a node they are passed over: the API server has written them into its selector."
    )


class TopologySpreadFile(Strict):
    """A topology spread constraint, as a pod spec has it."""

    topology_key: Text
    max_skew: _Skew
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelectorFile | None = None
    min_domains: _Skew | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    match_label_keys: list[str] = Field([])


class HostPortFile(Strict):
    """A port of a container that is taken of its node."""

    host_port: _Port
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    host_ip: str = Field("", alias="hostIP", description="Every address where none is named.")

    def value_of(self) -> HostPort:
        """Make the model's value."""
        port = HostPort(port=self.host_port, protocol=self.protocol)
        return port._replace(address=self.host_ip) if self.host_ip else port


class PodsOnNodeFile(Strict):
    """Pods on a node that are alike."""

    namespace: Text
    labels: Labels = Field({})
    count: Annotated[int, Field(ge=1, le=100_000)] = 1
    host_ports: list[HostPortFile] = Field([])
    pod_anti_affinity: list[PodAffinityTermFile] = Field([], description="Required: pods that they keep away.")

    def value_of(self) -> tuple[PodOnNode, ...]:
        """Make the model's values, one for each pod."""
        terms = [term.model_dump(mode="json", by_alias=True, exclude_none=True) for term in self.pod_anti_affinity]
        pod = PodOnNode(
            namespace=self.namespace,
            labels=tuple(sorted(self.labels.items())),
            ports=tuple(port.value_of() for port in self.host_ports),
            keeps=tuple(anti_affinity_terms(terms, self.namespace)),
        )
        return (pod,) * self.count
