"""What is known of a kind of workload: where its objects say how many pods of which templates they make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
"""A way through an object: field names, indexes of lists, and ``*`` for each item of a list or a mapping."""

EACH = "*"
"""The part of a path that stands for each item; a path has it once at most."""


def path(text: str) -> Path:
    """Take ``spec.tasks.*.replicas`` apart."""
    return tuple(text.split("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number that the pods of a template are multiplied by, as an object says it.

    It is read at `path`, or where nothing stands there at `instead`; where nothing stands at either it is `default`,
    and None says that nobody knows. What stands at `over` divides what stands at `path`. `less` is taken off, and the
    result is kept within what stands at `least` and at `most`. A ``*`` stands for the item that the template is in.
    Where it is not the template's own, `among` finds the item: the one that lists, in its first field, what the
    template's item has in the second; it is `default` where none does. What stands at `enough` is how many of them have
    to be there before any pod of the group runs; where nothing does, the number itself.
    """

    path: Path
    instead: Path = ()
    default: int | None = 1
    over: Path = ()
    less: int = 0
    least: Path = ()
    most: Path = ()
    among: tuple[str, str] | None = None
    enough: Path = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """Pods that an object makes of one template, or of one in each item of a list or a mapping.

    `spec` is where the pods' spec stands, or else `instead`. `containers` are fields of that spec which are a container
    each, and `resources` the requirements of one that stand apart; there ``gpu`` is NVIDIA's. `reference` names another
    object whose template it is. `labels` is where the labels of the pods can be written, empty where nowhere. One that
    is `optional` may be missing and makes no pods then. Of one that is `completed` elsewhere nobody knows what its pods
    need unless a container of it says so. As many pods are made as the product of `counts` says.
    """

    spec: Path = ()
    instead: Path = ()
    containers: tuple[str, ...] = ()
    resources: Path = ()
    reference: Path = ()
    labels: Path = ()
    optional: bool = False
    completed: bool = False
    counts: tuple[Count, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Pods that only run together: what one of them is `called`, and how many an object makes, as the product of these.

    `gang` is how many pods have to be there before any runs: all of them where nothing stands there, nor at `enough` of
    the counts of a template. Where `eager` stands with the value beside it, one is enough. Pods have the `label` that
    tells an object's groups apart, and the annotation `size` that says of how many pods theirs is to be; both are empty
    where its controller gives none.
    """

    called: str
    counts: tuple[Count, ...] = ()
    gang: Path = ()
    eager: tuple[Path, str] | None = None
    label: str = ""
    size: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A label that pods have for the sake of a kind: it holds the name of the object that they belong to.

    Another kind may use the same label, so pods have the labels `beside` it as well. Where it `made_up` the end of the
    name, the label holds that of an object between the two: the name, a dash and five characters.
    """

    label: str
    beside: tuple[tuple[str, str], ...] = ()
    made_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadKind:
    """A kind of workload, by API group and kind, and the versions of it that its paths hold for; none stand for all.

    `replicas` is where objects say how many they want, together. Objects that have true at one of `suspended` make no
    pods yet. Where something stands at one of `unknown`, an object makes one group of pods, and nobody knows how many
    before they are there. Of two numbers that are `ordered` the first may not be above the second. Of kinds that are
    not `counted` nobody counts the pods: there is one on each node, or they come and go. `apart` is the annotation that
    wants a topology domain for each group. Its pods are those that an object owns, itself or through others that are
    watched, and those that have one of its `marks`. `checked` says which release or commit all that was read from.
    """

    group: str
    kind: str
    versions: tuple[str, ...] = ()
    replicas: tuple[Path, ...] = ()
    templates: tuple[PodTemplate, ...] = field(default=())
    together: Group | None = None
    suspended: tuple[Path, ...] = ()
    unknown: tuple[Path, ...] = ()
    ordered: tuple[tuple[Path, Path], ...] = ()
    counted: bool = True
    apart: str = ""
    marks: tuple[Mark, ...] = ()
    checked: str = ""

    @property
    def name(self) -> str:
        """The ``group/Kind`` that it is known by."""
        return f"{self.group}/{self.kind}"
