"""A kind of workload: the fields in which its objects state their pods and replicas."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from reconciler.model.cluster import Category

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
    """The number if neither field is set; None if unknown."""
    over: Path = ()
    """A divisor of the number at `path`."""
    less: int = 0
    """Subtracted from the number."""
    least: Path = ()
    """The field of a lower bound."""
    most: Path = ()
    """The field of an upper bound."""
    among: tuple[str, str] | None = None
    """
    The fields by which an item of another list refers to the template's: its first field lists the value of the second
    field of the template's item; `default` if no item does.
    """
    enough: Path = ()
    """The field of the pods that have to exist before any pod of the group runs; the number itself where nothing is
    there."""
    elastic: Path = ()
    """The field that is true where an autoscaler inside of the object changes the number: its lower bound is enough
    then, and 0 without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """Pods that an object makes from one template, or from the template of each item of a list or a mapping."""

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
    """Path at which labels of the pods can be written; empty if they cannot."""
    optional: bool = False
    """Whether the template may be missing; the object then makes no pods."""
    suspended: Path = ()
    """The field of the item that suspends these pods alone when true: none of them is made then."""
    completed: bool = False
    """
    Whether another component completes the template, so that its requests are unknown unless a container states them.
    """
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
    leader: tuple[str, str] | None = None
    """The label and value of the one pod of each group that autoscalers measure; None where they measure all pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A label of pods with the name of the object that they belong to."""

    label: str
    beside: tuple[tuple[str, str], ...] = ()
    """Other labels of the pods, since another kind may use the same label."""
    made_up: bool = False
    """Whether the label holds the name of an intermediate object: the name, a dash and five characters."""
    infix: str = ""
    """What earlier releases of the controller put between the name and the dash of a made-up one; empty for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledPart:
    """A kind of objects whose scale subresource sets the replicas of some pods of another object.

    Autoscalers name such an object. It is known by the pods alone.
    """

    kind: str
    labels: tuple[str, ...]
    """The labels of its pods whose values are its name, joined by dashes and in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndStatus:
    """How the status of an object says that its run is over, and how it went."""

    complete: tuple[str, ...]
    """The words that say that the run is complete: types of conditions, or values of `word`."""
    failed: tuple[str, ...]
    """The words that say that the run is over without being complete."""
    ending: tuple[str, ...] = ()
    """The words that say that it is being ended: its pods go, and it asks for no other."""
    word: Path = ()
    """The field with the word; empty where conditions say it."""
    spoiled: tuple[Path, tuple[str, ...]] | None = None
    """A field, and its values with which a complete run has failed all the same."""
    moments: tuple[Path, ...] = ()
    """Fields with the moment of the end, the first that is there; the latest of all items for a ``*``. A condition has
    its own."""
    reasons: tuple[Path, ...] = ()
    """Fields that say why, the first that is there. A condition has its own."""
    explained_by: str = ""
    """The condition whose message says why, where none of `reasons` does."""
    by_pods: bool = True
    """Whether it is complete as well once as many pods as it makes have succeeded: False where others are made beside
    them, as of an initializer or a submitter, or where some of them never end by themselves."""


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
    scale: tuple[Path, ...] | None = None
    """The field that the scale subresource sets, empty without one; None where it is the one of `replicas`."""
    templates: tuple[PodTemplate, ...] = field(default=())
    wraps: Path = ()
    """The field of each object that an object of the kind holds whole, with a ``*``: its pods are theirs. Empty for
    none."""
    together: Group | None = None
    suspended: tuple[Path, ...] = ()
    """Fields that suspend an object when true: it makes no pods then."""
    stopped: str = ""
    """The annotation that stops an object when it is ``true``, so that it makes no pods, and that no queue takes away;
    empty for none."""
    unknown: tuple[Path, ...] = ()
    """Fields with which an object makes one group of pods, of unknown size beforehand; for a ``*`` in any item."""
    made: tuple[str, ...] = ()
    """Kinds of objects that stand between an object and its pods, as ``group/Kind``, without those of Kubernetes."""
    scaled_below: bool = False
    """Whether the objects that it makes state how many pods it wants at present, since they are what is autoscaled."""
    revisions: str = ""
    """The label of the objects that it makes by which those with one value are revisions of one part, of which at most
    one is wanted; ``*`` where all of one kind are. Empty where each is a part."""
    replaced: str = ""
    """The annotation of an object with the replicas that it had before what makes it began to replace it by its next
    revision; empty where nothing writes one."""
    ceiling: Path = ()
    """The field with the most replicas that the kind's own autoscaler makes; empty where it has none."""
    ordered: tuple[tuple[Path, Path], ...] = ()
    """Pairs of numbers, the first of which may not exceed the second."""
    counted: bool = True
    """False where pods cannot be counted: one on each node, or short-lived ones."""
    on_each_node: bool = False
    """Whether an object makes a pod on each node that it selects."""
    divides: bool = False
    """Whether each group of an object serves by itself, so that a policy may divide them over clusters."""
    apart: str = ""
    """The annotation that requires a topology domain for each group."""
    group_key: str = ""
    """The pod label that identifies a group for exclusive topology; all pods of an object have it."""
    subgroup_key: str = ""
    """The pod label that identifies a subgroup; empty where groups have none."""
    marks: tuple[Mark, ...] = ()
    scaled_as: tuple[ScaledPart, ...] = ()
    """The objects that autoscalers name for some of its pods, where none of them is watched."""
    once: bool = False
    """Whether the pods run to completion: a second copy of an object would do the same work again."""
    once_with: tuple[Path, ...] = ()
    """Fields of which one has to stand in an object for it to run once; empty where all do. Without its number of
    completions a Job takes work off a queue, which several may share."""
    completions: Path = ()
    """The field with the number of pods that have to succeed, of each item for a ``*``; empty where all of them have
    to."""
    runs: Path = ()
    """The field of an item with the number of jobs of so many pods; empty where there is one."""
    complete_early: tuple[tuple[Path, str], ...] = ()
    """Fields, each with the value that requires all jobs: any other lets a run be over before all pods succeed."""
    deadline: Path = ()
    """The field with the seconds after which a run is ended as failed, of each item for a ``*``; empty where a kind has
    none."""
    end: EndStatus | None = None
    """How the status of an object says that its run is over; None where its pods tell, or nothing."""
    ordinals: bool = False
    """Whether the pods are numbered."""
    one_by_one: bool = False
    """Whether Kueue and KAI admit its pods one by one."""
    unqueued: bool = False
    """Whether Kueue has no integration for the kind, so that it admits each of its pods as a Workload of its own."""
    spreads: bool = False
    """Whether OpenKruise spreads its replicas without a whitelist."""
    plural: str = ""
    """The resource by which its objects are watched in every cluster; empty where they are watched on demand."""
    short_name: str = ""
    """kubectl's short name, where a command of a template may name an object of it; else empty."""
    references: tuple[tuple[Path, Category], ...] = ()
    """Fields outside of pod specs that name an object which the cluster has to provide."""
    checked: str = ""
    """The release or commit from which this was read."""

    @property
    def name(self) -> str:
        """The key, ``group/Kind``."""
        return f"{self.group}/{self.kind}"

    @property
    def leaves_pods_unlabelled(self) -> bool:
        """Whether some pods get no label of their placement: their `marks` name the object, which has the label."""
        labelled = bool(self.wraps) or (bool(self.templates) and all(template.labels for template in self.templates))
        return bool(self.marks) and not labelled
