"""The kind WorkloadKind of ``overspill.dev``: where objects of a kind state their replicas and pod templates."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from reconciler.core.schema.strict_model import Metadata, Name, Strict, refusal
from reconciler.model.kubernetes.workload_kind import EACH, Path, path
from reconciler.text.findings import shortened

_PATH = r"^(?!status(\.|$))([A-Za-z0-9_-]+|\*)(\.([A-Za-z0-9_-]+|\*))*$"
_PART = re.compile(r"[A-Za-z0-9_-]+|\*")
_GROUP = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$"
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""A label's name without its prefix."""
_KIND = r"^[A-Z][A-Za-z0-9]{0,62}$"


def fault(text: str) -> tuple[str, str]:
    """Return the fault of a path and the remedy; both empty if there is none."""
    likely = ".".join(_PART.findall(text.replace("[]", ".*")))
    if any(_PART.fullmatch(part) is None for part in text.split(".")):
        return f"{shortened(text)!r} is no path", f"try {likely!r}" if likely else "try 'spec.replicas'"
    if text.split(".").count(EACH) > 1:
        return f"{shortened(text)!r} has more than one '*'", "try the index of one, as in 'spec.groups.0.tasks.*'"
    if path(text)[0] == "status":
        return f"{shortened(text)!r} is what a controller writes", "try a path that begins with 'spec'"
    return "", ""


def _refuse_impossible_path(text: str) -> str:
    """Refuse a path that can exist in no object."""
    message, hint = fault(text)
    if message:
        raise refusal(message, hint)
    return text


PathText = Annotated[str, Field(json_schema_extra={"pattern": _PATH}), AfterValidator(_refuse_impossible_path)]


def _label(label: str) -> str:
    """Refuse an invalid label name."""
    prefix, slash, name = label.rpartition("/")
    if _NAME.fullmatch(name) is None or (slash and (not prefix or re.fullmatch(_GROUP, prefix) is None)):
        raise refusal(f"{shortened(label)!r} is no label", "try 'game.example.com/set'")
    return label


class CountFile(Strict):
    """A number that the pods of a template are multiplied by."""

    path: PathText = Field(description="Path of the number; a '*' is the item with the template.")
    default: Annotated[int, Field(ge=0)] = Field(1, description="The number where the path does not exist.")
    less: Annotated[int, Field(ge=0)] = Field(
        0, description="Subtracted from the number, as 1 for the leader of a group."
    )


class PodCountFile(CountFile):
    """A number of pods or of groups of pods."""

    minimum_path: PathText | None = Field(
        None, description="The field with the number that a group needs before any of it runs; all if it is absent."
    )


class PodTemplateFile(Strict):
    """Pods of one template, or of one in each item of a list or a mapping."""

    path: PathText = Field(
        description=("Where the template stands, with `metadata` and `spec` below it; with a `*`, one in each item.")
    )
    counts: list[PodCountFile] = Field([], description="As many pods are made as their product; none listed: one.")
    optional: bool = Field(
        False, description=("It may be missing, and makes no pods then; otherwise the needs of the object are unknown.")
    )

    @model_validator(mode="after")
    def _of_its_items(self) -> PodTemplateFile:
        """Refuse a count in the items of another list, since the items could not be matched."""
        own = path(self.path)
        before = own[: own.index(EACH) + 1] if EACH in own else ()
        for text in (
            field_path for count in self.counts for field_path in (count.path, count.minimum_path) if field_path
        ):
            field_path = path(text)
            if EACH in field_path and (not before or field_path[: len(before)] != before):
                what = f"{text!r} counts the items of another list than {self.path!r}"
                raise refusal(what, f"try '{'.'.join(before)}.replicas'" if before else "try a path without '*'")
        return self


class GroupFile(Strict):
    """Pods that only run together."""

    called: Annotated[str, StringConstraints(min_length=1, max_length=40)] = Field(
        "group", description="The word for one group."
    )
    counts: list[CountFile] = Field([], description="An object makes as many as their product; none listed: one.")
    minimum_path: PathText | None = Field(
        None, description="The field with the number of pods that have to exist before any runs; all if it is absent."
    )
    pod_label: Annotated[str, AfterValidator(_label)] = Field(
        "", description="The label of its pods that tells the groups of one object apart."
    )

    @model_validator(mode="after")
    def _of_the_object(self) -> GroupFile:
        """Refuse a path to several places: the groups of an object are counted as a whole."""
        for written_path in (*(count.path for count in self.counts), self.minimum_path or ""):
            if EACH in path(written_path):
                raise refusal(f"{written_path!r} leads to several places", "try a path without '*'")
        return self


def _once(written_paths: list[str]) -> list[str]:
    """Refuse a path that is listed twice, since its number would count twice."""
    twice = next(
        (written_path for index, written_path in enumerate(written_paths) if written_path in written_paths[:index]),
        None,
    )
    if twice is not None:
        raise refusal(f"{shortened(twice)!r} is listed twice", "try listing it once")
    return written_paths


def _templates_once(templates: list[PodTemplateFile]) -> list[PodTemplateFile]:
    _once([template.path for template in templates])
    return templates


def _group(text: str) -> str:
    if re.fullmatch(_GROUP, text) is None:
        version = "; versions have a field of their own" if "/" in text else ""
        raise refusal(f"{shortened(text)!r} is no API group{version}", "try 'apps', or '' for the core's")
    return text


def _kind(text: str) -> str:
    if re.fullmatch(_KIND, text) is None:
        likely = re.sub("[^A-Za-z0-9]", "", text)[:63]
        hint = f"try '{likely[:1].upper()}{likely[1:]}'" if likely[:1].isalpha() else "try 'Deployment'"
        raise refusal(f"{shortened(text)!r} is no kind", hint)
    return text


def _labels(labels: list[str]) -> list[str]:
    """Refuse invalid label names."""
    return [_label(label) for label in _once(labels)]


class WorkloadKindSpec(Strict):
    """The paths of pod counts and pod templates in objects of a kind. Unset fields keep the built-in value."""

    group: Annotated[str, AfterValidator(_group)] = Field(
        description="The API group; '' for the core's.", json_schema_extra={"pattern": _GROUP}
    )
    kind: Annotated[str, AfterValidator(_kind)] = Field(
        description="The kind, as objects write it.", json_schema_extra={"pattern": _KIND}
    )
    versions: list[Name] = Field(
        [],
        description=(
            "Versions that this describes; none listed: all. The needs of an object of another version are unknown."
        ),
    )
    replicas_paths: Annotated[list[PathText], AfterValidator(_once)] = Field(
        [], description="Paths of the replica counts, which are added up."
    )
    pod_templates: Annotated[list[PodTemplateFile], AfterValidator(_templates_once)] = Field(
        [], description="The pods that an object makes."
    )
    makes_pods: bool = Field(True, description="False where objects make no pods that need room, as configuration.")
    groups: GroupFile | None = Field(None, description="Which of the pods only run together; none: each is for itself.")
    pod_labels: Annotated[list[str], AfterValidator(_labels)] = Field(
        [],
        description=(
            "Labels of its pods that hold the object's name, by which they are known on the primary "
            "where it does not own them itself."
        ),
    )

    @model_validator(mode="after")
    def _says_something(self) -> WorkloadKindSpec:
        """Refuse a kind without any statement."""
        stated = self.replicas_paths or self.pod_templates or self.pod_labels
        if not self.makes_pods and (stated or self.groups is not None):
            raise refusal("says that it makes no pods, and where its pods are", "try leaving makesPods out")
        if self.makes_pods and not stated:
            raise refusal("has neither replicasPaths nor podTemplates", "try replicasPaths: [spec.replicas]")
        if self.groups is not None and self.groups.pod_label and not self.pod_labels:
            what = "has a label that tells groups apart, and none that says whose pods they are"
            raise refusal(what, "try podLabels: [game.example.com/set]")
        return self


class WorkloadKindFile(Strict):
    """A kind of workload that is not built in, or one that is and has its pods elsewhere in your clusters."""

    api_version: Literal["overspill.dev/v1alpha1"]
    kind: Literal["WorkloadKind"]
    metadata: Metadata
    spec: WorkloadKindSpec

    @property
    def ways(self) -> tuple[Path, ...]:
        """The paths of the replicas."""
        return tuple(path(replicas_path) for replicas_path in self.spec.replicas_paths)
