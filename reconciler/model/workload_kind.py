"""A kind of workload: the fields in which its objects state their pods and replicas."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
"""A path in an object: field names, indexes of lists, and ``*`` for each item of a list or a mapping."""

EACH = "*"
"""The part of a path that stands for each item; at most one in a path."""


def path(text: str) -> Path:
    """Split ``spec.tasks.*.replicas`` into its parts."""
    return tuple(text.split("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A factor of the number of a template's pods, read from an object.

    A ``*`` in a path stands for the item that the template is in.
    """

    path: Path
    """The field of the number."""
    instead: Path = ()
    """Read where nothing is at `path`."""
    default: int | None = 1
    """Where nothing is at either; None for an unknown number."""
    over: Path = ()
    """A divisor of the number at `path`."""
    less: int = 0
    """Subtracted from the number."""
    least: Path = ()
    """The field of a lower bound."""
    most: Path = ()
    """The field of an upper bound."""
    among: tuple[str, str] | None = None
    """Where the item is not the template's own: it lists, in its first field here, the value that the template's item
    has in the second; `default` where no item does."""
    enough: Path = ()
    """The field of the pods that have to exist before any pod of the group runs; the number itself where nothing is
    there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """Pods that an object makes of one template, or of one in each item of a list or a mapping."""

    spec: Path = ()
    """The pod spec."""
    instead: Path = ()
    """Read where nothing is at `spec`."""
    containers: tuple[str, ...] = ()
    """Fields of the pod spec that are a container each."""
    resources: Path = ()
    """Requirements of a container outside of the pod spec; ``gpu`` is NVIDIA's there."""
    reference: Path = ()
    """A reference to another object, whose template it is."""
    labels: Path = ()
    """Where labels of the pods can be written; empty where nowhere."""
    optional: bool = False
    """Whether it may be missing, and then makes no pods."""
    completed: bool = False
    """Whether another component completes it, so that its requests are unknown unless a container states them."""
    counts: tuple[Count, ...] = ()
    """Factors of the number of pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Pods that are scheduled as a gang."""

    called: str
    """The name of a group in messages."""
    counts: tuple[Count, ...] = ()
    """Factors of the number of groups."""
    gang: Path = ()
    """The field of the pods that have to exist before any runs; all where nothing is there, nor at `enough` of a
    count."""
    eager: tuple[Path, str] | None = None
    """A field and the value with which one pod is enough."""
    label: str = ""
    """The pod label that identifies a group; empty where the controller sets none."""
    size: str = ""
    """The pod annotation with the size of the group; empty where the controller sets none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A label of pods with the name of the object that they belong to."""

    label: str
    beside: tuple[tuple[str, str], ...] = ()
    """Other labels of the pods, since another kind may use the same label."""
    made_up: bool = False
    """Whether the label holds the name of an intermediate object: the name, a dash and five characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadKind:
    """A kind of workload, with the paths of its fields.

    Pods belong to an object by owner references, directly or through other watched objects, or by one of its `marks`.
    """

    group: str
    kind: str
    versions: tuple[str, ...] = ()
    """Versions that the paths hold for; empty for all."""
    replicas: tuple[Path, ...] = ()
    """Fields whose sum is the wanted replicas."""
    templates: tuple[PodTemplate, ...] = field(default=())
    together: Group | None = None
    suspended: tuple[Path, ...] = ()
    """Fields that suspend an object when true: it makes no pods then."""
    unknown: tuple[Path, ...] = ()
    """Fields with which an object makes one group of pods, of unknown size beforehand."""
    ordered: tuple[tuple[Path, Path], ...] = ()
    """Pairs of numbers, the first of which may not exceed the second."""
    counted: bool = True
    """False where pods cannot be counted: one on each node, or short-lived ones."""
    apart: str = ""
    """The annotation that requires a topology domain for each group."""
    marks: tuple[Mark, ...] = ()
    checked: str = ""
    """The release or commit from which this was read."""

    @property
    def name(self) -> str:
        """Its key, ``group/Kind``."""
        return f"{self.group}/{self.kind}"
