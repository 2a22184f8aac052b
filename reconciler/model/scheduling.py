"""The words by which pods and nodes find each other: taints, tolerations, required labels, RuntimeClasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.units import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a node or, in a Cluster, of all its nodes. `effect` is one of Kubernetes' three."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        """Write ``key=value:effect`` as kubectl does."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A toleration as in a pod spec: an empty key with Exists tolerates all, an empty effect every effect.

    One with `seconds` only lets a pod stay for so long; it says nothing of where replicas fit.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequirement:
    """What a label of a node has to be; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerm:
    """Requirements that hold together, of a node's labels and of its fields, of which there is its name alone.

    A term that asks for nothing is met by no node: so Kubernetes has it.
    """

    labels: tuple[NodeRequirement, ...] = ()
    fields: tuple[NodeRequirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClass:
    """What a cluster adds to each pod that names a RuntimeClass; a node has to have all labels of the selector."""

    overhead: Resources = field(default_factory=Resources)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
