"""A live Helm release: what Helm keeps of it, its workload that bursts, and the value that sets its replicas.

Helm stores each revision in a Secret: base64 of gzip of JSON, with the chart's metadata, templates and default values,
the values of its user, and the objects that became of them. Where the chart came from is not among it
(helm.sh/docs/topics/advanced, "Storage backends"; Helm, pkg/storage/driver/util.go).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core.capacity.gpu_models import uses_gpus
from reconciler.core.capacity.pod_requirements import pods_of_spec
from reconciler.core.fleet.replica_paths import FIXED
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of, replica_fields
from reconciler.core.workloads.paths import at
from reconciler.errors import InvalidInput
from reconciler.model.kubernetes.workload_kind import Path, WorkloadKind
from reconciler.model.workload import DeploySpec, Json, ManifestResource, Step, StepType
from reconciler.text.spelling import nearest
from reconciler.text.wording import join_names

SECRET_TYPE = "helm.sh/release.v1"  # noqa: S105 - a type, not what is in one
MAX_BYTES = 64 << 20
"""Most bytes of a release without compression; a Secret holds 1 MiB at most."""

_WORDS = frozenset({"release", "releases", "helmrelease", "helmreleases", "hr", "helm", "chart"})
_DEEPEST = 60
"""Levels of a release; files of a fleet have 64 at most."""
_GZIP = 31
"""The window of zlib that stands for gzip."""
_COUNT_NAMES = frozenset({"replicaCount", "replicas"})
_READ_IN_TEMPLATE = re.compile(
    r"^[ \t]*replicas:[ \t]*\{\{-?[ ]*+(?:int[ ]++)?\(?[ ]*+\.Values\.([\w.]+)", re.MULTILINE
)
"""A template's line with the replicas of its object and the value that sets them."""
_CHART_LABEL = re.compile(r"(?P<name>.+?)-(?P<version>v?[0-9]+\.[0-9]+\.[0-9]+.*)")
_HEADING = "USER-SUPPLIED VALUES"
"""The first line of what `helm get values` prints for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartObject:
    """An object of a release, and the template that made it: ``vllm-stack/templates/deployment.yaml``."""

    manifest: Mapping[str, Json]
    source: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return str(at(self.manifest, ("metadata", "name")) or "")

    @property
    def title(self) -> str:
        """Its kind and name as people write them."""
        return f"{str(self.manifest.get('kind')).casefold()}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmRelease:
    """A release as its cluster runs it."""

    name: str
    namespace: str
    chart: str
    version: str
    objects: tuple[ChartObject, ...]
    values: Mapping[str, Json] = field(default_factory=dict)
    """The values of its user."""
    defaults: Mapping[str, Json] = field(default_factory=dict)
    """The chart's own values, where they are known."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """The chart's templates by path, where they are known; not those of its dependencies."""
    home: str = ""
    """The chart's page, where it names one."""
    hooks: int = 0
    custom_kinds: bool = False
    """Whether the chart brings CustomResourceDefinitions outside its templates."""
    read_from: str = ""
    """What it was read from, as messages name it."""

    @property
    def title(self) -> str:
        """The release in messages."""
        return f"release {self.namespace}/{self.name}"


def is_release(word: str) -> bool:
    """Return whether a word for a kind means a Helm release, which is no object of Kubernetes."""
    return word.casefold() in _WORDS


def release_document(secret: Mapping[str, Json]) -> Mapping[str, Json]:
    """Decode what Helm keeps in a Secret. Raises InvalidInput for anything else; no message quotes its content."""
    name = at(secret, ("metadata", "name"))
    try:
        packed = base64.b64decode(base64.b64decode(str(at(secret, ("data", "release"))), validate=True), validate=True)
        if packed[:2] == b"\x1f\x8b":
            unpacking = zlib.decompressobj(_GZIP)
            packed = unpacking.decompress(packed, MAX_BYTES)
            if unpacking.unconsumed_tail:
                raise InvalidInput(f"Secret {name} is over {MAX_BYTES >> 20} MiB without compression")
        document = json.loads(packed)
        _refuse_depth(document)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        document = None
    if secret.get("type") != SECRET_TYPE or not isinstance(document, dict):
        raise InvalidInput(f"Secret {name} is no release of Helm 3 or 4")
    return document


def _refuse_depth(document: Json) -> None:
    """Raise ValueError for more levels than a file of a fleet may have."""
    level: list[Json] = [document]
    for _ in range(_DEEPEST):
        level = [child for value in level for child in _children(value)]
    if level:
        raise ValueError(f"over {_DEEPEST} levels")


def _children(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def read_release(document: Mapping[str, Json], objects: Iterable[ChartObject], read_from: str) -> HelmRelease:
    """Make a release from what Helm keeps of it and the objects of its manifest.

    Raises InvalidInput where a part lacks.
    """
    chart = at(document, ("chart",)) or {}
    name, version = at(chart, ("metadata", "name")), at(chart, ("metadata", "version"))
    if not (isinstance(name, str) and isinstance(version, str) and name and version):
        raise InvalidInput(f"{read_from} names no chart and version")
    texts = {}
    for item in _items(at(chart, ("templates",))):
        path, data = item.get("name"), item.get("data")
        try:
            texts[str(path)] = base64.b64decode(str(data), validate=True).decode()
        except (binascii.Error, ValueError):
            continue
    files = [str(item.get("name")) for item in _items(at(chart, ("files",)))]
    return HelmRelease(
        name=str(document.get("name")),
        namespace=str(document.get("namespace")),
        chart=name,
        version=version,
        objects=tuple(objects),
        values=_mapping(document.get("config")),
        defaults=_mapping(at(chart, ("values",))),
        templates=texts,
        home=str(at(chart, ("metadata", "home")) or ""),
        hooks=len(list(_items(document.get("hooks")))),
        custom_kinds=any(path.startswith("crds/") for path in files),
        read_from=read_from,
    )


def chart_of(objects: Iterable[ChartObject]) -> tuple[str, str]:
    """Return the chart and its version by the label that charts give their objects; empty where none does."""
    for each in objects:
        label = at(each.manifest, ("metadata", "labels", "helm.sh/chart"))
        if isinstance(label, str) and (match := _CHART_LABEL.fullmatch(label)):
            return match["name"], match["version"].replace("_", "+")
    return "", ""


def user_values(document: Json) -> Mapping[str, Json]:
    """Return values as `helm get values` prints them, with its heading or without. Raises InvalidInput for others."""
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InvalidInput("the values are no mapping (try what `helm get values RELEASE --output yaml` prints)")
    return {key: value for key, value in document.items() if not (key == _HEADING and value is None)}


def choose_workload(release: HelmRelease, named: tuple[WorkloadKind, str] | None, kinds: Kinds) -> ChartObject:
    """Return the object of a release whose replicas burst: by kind and name, else the only one, or that with GPUs.

    Raises InvalidInput where there is none, or several are equal.
    """
    workloads = [each for each in release.objects if kind_of(each.manifest, kinds) is not None]
    titles = [each.title for each in workloads]
    if named is not None:
        kind, name = named
        for each in workloads:
            if group_kind(each.manifest) == kind.name and each.name == name:
                return each
        hint = nearest(f"{kind.kind.casefold()}/{name}", titles)
        raise InvalidInput(f"{release.title} has no {kind.kind} {name}{f' ({hint})' if hint else ''}")
    if not workloads:
        raise InvalidInput(f"{release.title} has no workload that could burst")
    able = [each for each in workloads if _has_gpus(each, kinds)] or workloads
    if len(able) > 1:
        raise InvalidInput(
            f"{release.title} has several workloads: say which bursts with --counted: {', '.join(titles)}"
        )
    return able[0]


def _has_gpus(made: ChartObject, kinds: Kinds) -> bool:
    resource, step = ManifestResource(name="it", manifest=made.manifest), Step(name="it", type=StepType.MANIFEST)
    pods = pods_of_spec(DeploySpec(manifests=(resource,), steps=(step,)), kinds)
    return any(uses_gpus(part.shape) for part in pods.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaValue:
    """Where the values of a chart say how many replicas a workload has."""

    path: Path
    """Empty for a workload of which each placement is one copy."""
    copy: int | None = None
    """The replicas of a copy, where the object states them."""
    because: str = ""
    """How it is known, where that is a guess."""


def replica_value(release: HelmRelease, workload: ChartObject, kinds: Kinds, given: str | None) -> ReplicaValue:
    """Find the value that sets the replicas of a workload: the one that a person names, else that of its template.

    Raises InvalidInput with those that might, where it stays open which does.
    """
    whole = merged(release.defaults, release.values)
    scale = replica_fields(workload.manifest, kinds)
    number = at(workload.manifest, scale[0]) if len(scale) == 1 else None
    if given == FIXED:
        return ReplicaValue(path=(), copy=number if type(number) is int and number > 0 else None)
    if given is not None:
        path = tuple(given.replace("[", ".").replace("]", "").split("."))
        if not all(path) or type(at(whole, path)) not in (int, type(None)) or _leads_nowhere(whole, path):
            raise InvalidInput(f"--replicas-value: no number stands at {given} in the values of chart {release.chart}")
        return ReplicaValue(path=path)
    if len(scale) != 1:
        return ReplicaValue(path=())
    # 1. The template that made the workload reads it.
    by_template = {path for path in _read_by_template(release, workload) if type(at(whole, path)) is int}
    if len(by_template) == 1:
        return ReplicaValue(path=by_template.pop())
    # 2. One value is called like replicas and is their number; one of the user's goes before one of the chart's.
    named = [path for path in _counts((), whole) if number is None or at(whole, path) == number]
    own = [path for path in named if at(release.values, path) is not None]
    likely = own or named
    if len(likely) == 1:
        return ReplicaValue(path=likely[0], because="by its name and number")
    others = [".".join(path) for path in (likely or _counts((), whole))]
    tried = f"try one of {', '.join(others)}" if others else "name it as in the chart's values"
    raise InvalidInput(
        f"{release.title}: it is open which value sets the replicas of {workload.title}: say it with --replicas-value"
        f" PATH ({tried}; `{FIXED}` makes each placement one copy)"
    )


def _read_by_template(release: HelmRelease, workload: ChartObject) -> Iterator[Path]:
    """Yield the values that the template of a workload reads its replicas from."""
    text = release.templates.get(workload.source.removeprefix(f"{release.chart}/"), "")
    for match in _READ_IN_TEMPLATE.finditer(text):
        yield tuple(match[1].split("."))


def _counts(loc: Path, value: Json) -> list[Path]:
    """List the places of numbers that are called like replicas, outer ones first."""
    if isinstance(value, list):
        return [inner for index, item in enumerate(value) for inner in _counts((*loc, str(index)), item)]
    if not isinstance(value, Mapping):
        return []
    own = [(*loc, name) for name, item in value.items() if name in _COUNT_NAMES and type(item) is int]
    return own + [inner for key, item in value.items() for inner in _counts((*loc, str(key)), item)]


def _leads_nowhere(values: Json, path: Path) -> bool:
    """Return whether a path leads through what is neither a mapping nor an item of a list."""
    for part in path[:-1]:
        values = at(values, (part,))
        if values is not None and not isinstance(values, Mapping | list):
            return True
        if isinstance(values, list) and not values:
            return True
    return isinstance(values, list)


def merged(defaults: Json, values: Json) -> Json:
    """Return the values of a chart as its templates see them: mappings are merged, anything else is replaced."""
    if not isinstance(defaults, Mapping) or not isinstance(values, Mapping):
        return values
    together = {**defaults, **values}
    return {
        key: merged(defaults[key], values[key]) if key in defaults and key in values else value
        for key, value in together.items()
    }


def with_value(values: Mapping[str, Json], defaults: Json, path: Path, new: Json) -> Mapping[str, Json]:
    """Return a user's values with one at a path; a list on the way that only the chart has is copied whole."""

    def put(own: Json, usual: Json, rest: Path) -> Json:
        if not rest:
            return new
        part = rest[0]
        if own is None:
            own = usual if isinstance(usual, list) else {}
        if isinstance(own, list):
            return [put(item, None, rest[1:]) if str(index) == part else item for index, item in enumerate(own)]
        below = usual.get(part) if isinstance(usual, Mapping) else None
        return {**own, part: put(own.get(part), below, rest[1:])}

    done: Mapping[str, Json] = put(values, defaults, path)
    return done


def in_namespace(release: HelmRelease, made: ChartObject) -> ChartObject:
    """Return an object of a release with the namespace that it is in."""
    metadata = _mapping(made.manifest.get("metadata"))
    placed = {**metadata, "namespace": metadata.get("namespace") or release.namespace}
    return replace(made, manifest={**made.manifest, "metadata": placed})


def other_workloads(release: HelmRelease, workload: ChartObject, kinds: Kinds) -> str:
    """Name the workloads of a release that come along with each burst; empty without any."""
    others = (each for each in release.objects if each is not workload and kind_of(each.manifest, kinds) is not None)
    return join_names(each.title for each in others)


def _items(value: Json) -> Iterator[Mapping[str, Json]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
