"""What Kueue's webhooks refuse of a workload, of main ff69552 (2026-08-22, after 0.19).

They look at what is in a queue, and at much of what is in none: annotations of topologies are held to the rules
wherever Kueue has an integration for the kind, or for pods. Whether a cluster has Kueue is not known here, so that an
object without a queue gets a warning (`table`). What Kueue refuses of a change is in `immutable_rules`, and which pods
are one set in `workloads.kueue_pod_sets`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from reconciler.core.pods.label_syntax import is_label_key
from reconciler.core.pods.topology_annotations import (
    GROUP,
    PREFERRED,
    REQUIRED,
    SLICE,
    SLICE_LEVELS,
    SLICE_SIZE,
    UNCONSTRAINED,
)
from reconciler.core.validation.admission.rule import LONGEST_LABEL, AdmissionRule, AdmissionSubject
from reconciler.core.validation.rules import is_subdomain
from reconciler.core.workloads.builtin_kinds import kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import PodTemplateSite, pod_template_sites, pods_of_group
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.text.findings import Finding, shortened
from reconciler.text.wording import count, join_names

QUEUE = ("metadata", "labels", "kueue.x-k8s.io/queue-name")
_PREFIX = "kueue.x-k8s.io/"
_TOPOLOGIES = (REQUIRED, PREFERRED, UNCONSTRAINED)
_ELASTIC = ("metadata", "annotations", f"{_PREFIX}elastic-job")
_MIN_PARALLELISM = ("metadata", "annotations", f"{_PREFIX}job-min-parallelism")
_EQUAL = ("metadata", "annotations", f"{_PREFIX}job-completions-equal-parallelism")
_GATED_BY = ("metadata", "annotations", f"{_PREFIX}admission-gated-by")
_LONGEST_TIME = ("metadata", "labels", f"{_PREFIX}max-exec-time-seconds")
_PREBUILT = f"{_PREFIX}prebuilt-workload-name"
_POD_GROUP, _POD_TOTAL = f"{_PREFIX}pod-group-name", f"{_PREFIX}pod-group-total-count"
_MANAGED = ("metadata", "labels", f"{_PREFIX}managed")

_INT32 = 2**31 - 1
_UINT64 = 2**64 - 1
_INTEGER, _DIGITS = re.compile(r"[+-]?[0-9]{1,19}"), re.compile(r"[0-9]{1,20}")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
"""What Go reads as a boolean (``strconv.ParseBool``)."""
_MOST_LAYERS = 3
_MOST_POD_SETS = 18
_GROUP_SIZE = 2
"""Pod sets of one group."""

_JOB, _POD = "batch/Job", "/Pod"
_RAY: Mapping[str, Path] = {
    "ray.io/RayCluster": ("spec",),
    "ray.io/RayJob": ("spec", "rayClusterSpec"),
    "ray.io/RayService": ("spec", "rayClusterConfig"),
}
_KUBEFLOW = frozenset(f"kubeflow.org/{kind}" for kind in ("JAXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"))
_LWS, _JOBSET, _MPI = "leaderworkerset.x-k8s.io/LeaderWorkerSet", "jobset.x-k8s.io/JobSet", "kubeflow.org/MPIJob"
_SERVING = frozenset({_LWS, "apps/Deployment", "apps/StatefulSet"})
"""Kinds whose pods Kueue admits, not the object."""
_GROUPING = frozenset({_LWS, _JOBSET, _MPI, *_RAY})
"""Kinds whose groups of pod sets are checked."""
_SIZED = _GROUPING | _KUBEFLOW | {_JOB}
"""Kinds whose slices are held against the size of their pod set."""
_ELASTIC_KINDS = frozenset({_JOB, *_RAY})
_PREBUILT_KINDS = frozenset({
    _JOB, _JOBSET, _MPI, _POD, "trainer.kubeflow.org/TrainJob", "workload.codeflare.dev/AppWrapper", *_RAY,
    *(_KUBEFLOW - {"kubeflow.org/JAXJob"}),
})  # fmt: skip # a list of words, filled line by line
_JOB_KINDS = _PREBUILT_KINDS | _KUBEFLOW
"""Kinds that are admitted whole."""


def is_queued(subject: AdmissionSubject) -> bool:
    """Return whether an object, or pods of one of its templates, name a queue: it needs Kueue then."""
    if subject.states(*QUEUE):
        return True
    return any(subject.states(*template.metadata, "labels", QUEUE[-1]) for template in _templates(subject))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Template:
    """A pod template, with the path of the mapping that its annotations are in."""

    site: PodTemplateSite
    metadata: Path

    @property
    def annotations(self) -> Path:
        return (*self.metadata, "annotations")


def _templates(subject: AdmissionSubject) -> list[_Template]:
    """List the pod templates of an object, each once: that of the workers may be the leader's too."""
    templates: dict[Path, _Template] = {}
    for site in pod_template_sites(subject.manifest, subject.kinds):
        spec_path = tuple(map(str, site.loc))
        if not spec_path:
            continue
        owner = spec_path[:-1] if spec_path[-1:] in (("spec",), ("podSpec",)) else spec_path
        metadata = (*owner, "metadata") if isinstance(at(subject.manifest, (*owner, "metadata")), Mapping) else owner
        templates.setdefault(metadata, _Template(site=site, metadata=metadata))
    return list(templates.values())


def _pods_in_set(subject: AdmissionSubject, template: _Template) -> int | None:
    """Count the pods of the set of a template; None where unknown.

    Templates that are read at one place are one set, as those of a LeaderWorkerSet without a leaderTemplate.
    """
    kind = kind_of(subject.manifest, subject.kinds)
    if kind is None:
        return None
    sites = [s for s in pod_template_sites(subject.manifest, subject.kinds) if s.loc == template.site.loc]
    numbers = [pods_of_group(subject.manifest, kind, site) for site in sites]
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _parsed(text: str | None) -> int | None:
    """Read a number of 32 bits as Go does; None for anything else."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    return number if abs(number := int(text)) <= _INT32 else None


def _check_queue(subject: AdmissionSubject) -> Iterator[Finding]:
    name = subject.text(*QUEUE)
    if name and not is_subdomain(name):
        message = f"{shortened(name)!r} cannot be the name of a queue"
        yield subject.finding(QUEUE, message, "a-z, 0-9, dashes and dots")


def _check_prebuilt(subject: AdmissionSubject) -> Iterator[Finding]:
    for part in ("annotations", "labels"):
        path = ("metadata", part, _PREBUILT)
        name = subject.text(*path)
        if name is None:
            continue
        if name and not is_subdomain(name):
            yield subject.finding(path, f"{shortened(name)!r} cannot be the name of a Workload")
        elif name and subject.kind not in _PREBUILT_KINDS:
            message = f"Kueue admits no {subject.manifest.get('kind')} by a Workload that was made before"
            yield subject.finding(path, message, "leave the annotation or label out: Kueue makes the Workload")


def _check_longest_time(subject: AdmissionSubject) -> Iterator[Finding]:
    text = subject.text(*_LONGEST_TIME)
    if text is not None and (_parsed(text) or 0) <= 0:
        yield subject.finding(_LONGEST_TIME, f"{shortened(text)!r} is no number of seconds above 0", 'try "3600"')


def _check_elastic(subject: AdmissionSubject) -> Iterator[Finding]:
    if subject.text(*_ELASTIC) != "true":
        return
    if subject.kind not in _ELASTIC_KINDS:
        message = f"Kueue has no elastic {subject.manifest.get('kind')}"
        yield subject.finding(_ELASTIC, message, "leave the annotation out; a Job and Ray's kinds may be elastic")
    elif subject.kind == _JOB:
        for template in _templates(subject):
            for name in (REQUIRED, PREFERRED):
                if subject.states(*template.annotations, name):
                    message = "an elastic job can only have an unconstrained topology"
                    hint = f"try {UNCONSTRAINED}, or leave {_ELASTIC[-1]} out"
                    yield subject.finding((*template.annotations, name), message, hint)


def _check_gates(subject: AdmissionSubject) -> Iterator[Finding]:
    text, seen = subject.text(*_GATED_BY), set[str]()
    for name in text.split(",") if text else ():
        gate = name.strip()
        domain, slash, rest = gate.partition("/")
        if not slash or not rest or not is_subdomain(domain) or len(gate) > LONGEST_LABEL:
            message = f"{shortened(gate)!r} names no gate of admission"
            yield subject.finding(_GATED_BY, message, "try one like example.com/approval, parted by commas")
        elif gate in seen:
            yield subject.finding(_GATED_BY, f"the gate {shortened(gate)!r} is there twice", "keep one of them")
        seen.add(gate)


def _check_topologies(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the annotations of each pod template by themselves."""
    for template in _templates(subject):
        path = template.annotations
        stated = [name for name in _TOPOLOGIES if subject.states(*path, name)]
        if len(stated) > 1:
            message = f"a pod set has one topology annotation, not {join_names(stated)}"
            yield subject.finding((*path, stated[-1]), message, "leave all but one of them out")
        for name in (REQUIRED, PREFERRED, SLICE):
            text = subject.text(*path, name)
            if text is not None and not is_label_key(text):
                message = f"{shortened(text)!r} cannot be a topology: it is the name of a label of nodes"
                yield subject.finding((*path, name), message, "try one like topology.kubernetes.io/zone")
        text = subject.text(*path, UNCONSTRAINED)
        if text is not None and text not in _TRUE | _FALSE:
            message = f"{shortened(text)!r} is no boolean for an unconstrained topology"
            yield subject.finding((*path, UNCONSTRAINED), message, 'try "true"')
        yield from _check_slice(subject, template)


def _check_slice(subject: AdmissionSubject, template: _Template) -> Iterator[Finding]:
    path = template.annotations
    sliced, sized = subject.states(*path, SLICE), subject.states(*path, SLICE_SIZE)
    if sliced and not sized:
        message = "a topology for slices needs their size"
        yield subject.finding((*path, SLICE), message, f"add {SLICE_SIZE} with the pods of a slice")
    elif sized and not sliced:
        message = "a size of slices needs their topology"
        yield subject.finding((*path, SLICE_SIZE), message, f"add {SLICE}, or leave the size out")
    text = subject.text(*path, SLICE_SIZE)
    if text is None:
        return
    size, pods = _parsed(text), _pods_in_set(subject, template) if subject.kind in _SIZED else None
    if size is None or size < 1:
        message = f"{shortened(text)!r} is no size of a slice: a whole number from 1 on"
        yield subject.finding((*path, SLICE_SIZE), message, 'try "1"')
    elif pods is not None and size > pods:
        message = f"a slice of {size} is larger than its pod set of {count(pods, 'pod')}"
        yield subject.finding((*path, SLICE_SIZE), message, f'try "{max(1, pods)}"')


def _check_layers(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check slices in several layers, which are written as JSON."""
    for template in _templates(subject):
        path = (*template.annotations, SLICE_LEVELS)
        text = subject.text(*path)
        if text is None:
            continue
        if any(subject.states(*template.annotations, name) for name in (SLICE, SLICE_SIZE)):
            message = "slices in layers exclude the topology and the size of single ones"
            yield subject.finding(path, message, f"leave {SLICE} and {SLICE_SIZE} out")
        layers = _layers(text)
        if layers is None or not 1 <= len(layers) <= _MOST_LAYERS:
            message = f"slices in layers are 1 to {_MOST_LAYERS}, each with a topology and a size"
            yield subject.finding(path, message, """try '[{"topology": "example.com/rack", "size": 4}]'""")
            continue
        pods = _pods_in_set(subject, template) if subject.kind in _SIZED else None
        if pods is not None and layers[0][1] > pods:
            message = f"a slice of {layers[0][1]} is larger than its pod set of {count(pods, 'pod')}"
            yield subject.finding(path, message, f"try a size of {max(1, pods)}")
        names = [name for name, _ in layers]
        if len(set(names)) < len(names):
            yield subject.finding(path, "a topology stands in two layers of slices", "leave one of them out")
        if not all(is_label_key(name) for name in names):
            message = "a topology of slices is the name of a label of nodes"
            yield subject.finding(path, message, "try one like topology.kubernetes.io/zone")
        sizes = [size for _, size in layers]
        if min(sizes) < 1:
            yield subject.finding(path, "a slice has at least one pod", "try a size of 1")
        elif any(outer % inner for outer, inner in pairwise(sizes)):
            message = "slices of an inner layer do not divide those of the layer above evenly"
            yield subject.finding(path, message, "try a divisor")


def _layers(text: str) -> list[tuple[str, int]] | None:
    """Read the topologies and sizes of slices in layers; None for another value."""
    try:
        layers = json.loads(text)
    except ValueError:
        return None
    if not isinstance(layers, list) or not all(isinstance(layer, Mapping) for layer in layers):
        return None
    read = [(layer.get("topology", ""), layer.get("size", 0)) for layer in layers]
    return read if all(isinstance(name, str) and type(size) is int for name, size in read) else None


def _check_group_names(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the group that the pod set of a template names, by itself."""
    for template in _templates(subject):
        path = (*template.annotations, GROUP)
        text = subject.text(*path)
        if text is None:
            continue
        if _DIGITS.fullmatch(text) and int(text) <= _UINT64:
            message = f"{shortened(text)!r} cannot be the name of a group of pod sets: it is a number"
            yield subject.finding(path, message, f"try 'group-{shortened(text, 20)}'")
        sliced = [n for n in (SLICE, SLICE_SIZE, SLICE_LEVELS) if subject.states(*template.annotations, n)]
        if sliced:
            message = f"a group of pod sets has no slices, and {sliced[0]} is there"
            yield subject.finding(path, message, "leave the group or the slices out")


def _check_grouped_topology(subject: AdmissionSubject) -> Iterator[Finding]:
    for template in _templates(subject):
        path = (*template.annotations, GROUP)
        stated = any(subject.states(*template.annotations, name) for name in (REQUIRED, PREFERRED))
        if subject.states(*path) and not stated:
            message = "a group of pod sets needs a required or a preferred topology"
            yield subject.finding(path, message, f"add {REQUIRED}, or leave the group out")


def _check_groups(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check that a group has two pod sets, one of them of one pod, with the same topology."""
    groups: dict[str, list[_Template]] = {}
    for template in _templates(subject):
        if subject.is_open(*template.annotations, GROUP):
            return
        name = subject.text(*template.annotations, GROUP)
        if name is not None and any(subject.states(*template.annotations, topology) for topology in _TOPOLOGIES):
            groups.setdefault(name, []).append(template)
    for name, members in groups.items():
        path = (*members[0].annotations, GROUP)
        if len(members) != _GROUP_SIZE:
            message = f"the group {shortened(name)!r} has {count(len(members), 'pod set')}, and Kueue takes two"
            hint = "name it in the annotations of both templates, or in none"
            yield subject.finding(path, message, hint)
            continue
        sizes = [_pods_in_set(subject, member) for member in members]
        if None not in sizes and 1 not in sizes:
            message = f"of the two pod sets of group {shortened(name)!r} one has to be of one pod"
            yield subject.finding(path, message, "leave the group out")
        for topology in (REQUIRED, PREFERRED):
            wanted = [subject.get(*member.annotations, topology) for member in members]
            is_open = any(subject.is_open(*member.annotations, topology) for member in members)
            if not is_open and wanted[0] != wanted[1]:
                message = f"both pod sets of group {shortened(name)!r} need the same topology"
                yield subject.finding(path, message, f"give both templates the same {topology}")
                break


def _check_job(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check the annotations of a Job that may run with fewer pods, or whose completions follow its parallelism."""
    text = subject.text(*_MIN_PARALLELISM)
    pods = next((_pods_in_set(subject, template) for template in _templates(subject)), None)
    if text is not None:
        least = _parsed(text)
        if least is None or least <= 0 or (pods is not None and least >= pods):
            most = f"{count(pods, 'pod')} of the Job" if pods is not None else "pods of the Job"
            message = f"a minimal parallelism of {shortened(text)} is not between 0 and the {most}"
            hint = f'try "{pods - 1}"' if pods is not None and pods > 1 else "leave the annotation out"
            yield subject.finding(_MIN_PARALLELISM, message, hint)
        if subject.text(*_ELASTIC) == "true":
            message = "an elastic job has no minimal parallelism"
            yield subject.finding(_MIN_PARALLELISM, message, "leave this annotation or the one of elastic jobs out")
    text = subject.text(*_EQUAL)
    if text is not None and text not in _TRUE | _FALSE:
        yield subject.finding(_EQUAL, f"{shortened(text)!r} is no boolean", 'try "true", or leave the annotation out')
    elif text in _TRUE:
        if not subject.is_open("spec", "completionMode") and subject.get("spec", "completionMode") != "Indexed":
            message = "completions follow the parallelism of an Indexed Job alone"
            yield subject.finding(_EQUAL, message, "set completionMode: Indexed, or leave the annotation out")
        parallelism = subject.number("spec", "parallelism", default=1)
        completions = subject.number("spec", "completions", default=1)
        if parallelism is not None and completions is not None and parallelism != completions:
            message = f"completions are {completions}, and the annotation {_EQUAL[-1]} wants {parallelism}"
            yield subject.finding(_EQUAL, message, "leave the annotation out, or make both equal")


def _check_ray(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check a Ray cluster in a queue."""
    if not subject.states(*QUEUE):
        return
    root = _RAY[subject.kind]
    if subject.kind == "ray.io/RayJob":
        if subject.mapping("spec", "clusterSelector"):
            if subject.states(*root):
                message = "a RayJob in a queue does not run on a cluster that is there"
                yield subject.finding(("spec", "clusterSelector"), message, "leave it or rayClusterSpec out")
            return
        ends = ("spec", "shutdownAfterJobFinishes")
        if subject.states(*root) and not subject.is_open(*ends) and subject.get(*ends) is not True:
            message = "a RayJob in a queue has to delete its cluster once it is over"
            path = ends if subject.states(*ends) else ("spec",)
            yield subject.finding(path, message, "set shutdownAfterJobFinishes: true")
    scaling = (*root, "enableInTreeAutoscaling")
    if subject.get(*scaling) is True and subject.text(*_ELASTIC) != "true":
        message = "a Ray cluster in a queue scales by itself only as an elastic job"
        yield subject.finding(scaling, message, f'leave it out, or annotate it with {_ELASTIC[-1]}: "true"')
    groups = [*subject.items(*root, "workerGroupSpecs")]
    if len(groups) + 1 > _MOST_POD_SETS:
        message = f"{len(groups)} worker groups are more than the {_MOST_POD_SETS - 1} that a queue takes"
        yield subject.finding((*root, "workerGroupSpecs"), message, "join some of them")
    for group in groups:
        if subject.text(*group, "groupName") == "head":
            message = "a group of workers in a queue is not called 'head'"
            yield subject.finding((*group, "groupName"), message, "give it another name")


def _check_pod(subject: AdmissionSubject) -> Iterator[Finding]:
    """Check a Pod that is one of a group, and the label by which Kueue manages it."""
    managed = subject.text(*_MANAGED)
    if managed is not None and managed != "true":
        yield subject.finding(_MANAGED, "the label of pods that Kueue manages is 'true'", "leave it out")
    for part in ("annotations", "labels"):
        name = subject.text("metadata", part, _POD_GROUP)
        if name and not is_subdomain(name):
            message = f"{shortened(name)!r} cannot be the name of a group of pods"
            yield subject.finding(("metadata", part, _POD_GROUP), message, "a-z, 0-9, dashes and dots")
    named = next(
        (part for part in ("annotations", "labels") if at(subject.manifest, ("metadata", part, _POD_GROUP))), None
    )
    total = ("metadata", "annotations", _POD_TOTAL)
    if named is not None and not subject.states(*total):
        message = "a group of pods needs the number of its pods"
        yield subject.finding(("metadata", named, _POD_GROUP), message, f"add the annotation {_POD_TOTAL}")
    elif named is None and subject.states(*total):
        yield subject.finding(total, "a number of pods needs the name of their group", f"add the label {_POD_GROUP}")
    text = subject.text(*total)
    if text is not None and (_parsed(text) or 0) < 1:
        yield subject.finding(total, f"{shortened(text)!r} is no number of pods of a group", 'try "2"')


_JOBFRAMEWORK = "pkg/controller/jobframework"
_JOBS = "pkg/controller/jobs"

RULES = (
    AdmissionRule(
        refuses="the name of a queue that no object can have",
        source=f"{_JOBFRAMEWORK}/validation.go",
        check=_check_queue,
    ),
    AdmissionRule(
        kinds=_JOB_KINDS,
        refuses="a Workload made before, for a kind that takes none",
        source=f"{_JOBFRAMEWORK}/validation.go",
        check=_check_prebuilt,
    ),
    AdmissionRule(
        kinds=_JOB_KINDS,
        refuses="a longest time that is no number of seconds",
        source=f"{_JOBFRAMEWORK}/validation.go",
        check=_check_longest_time,
    ),
    AdmissionRule(
        kinds=_JOB_KINDS | _SERVING,
        refuses="elastic objects of kinds other than Job and Ray's, and elastic Jobs with a topology",
        source=f"{_JOBFRAMEWORK}/validation.go",
        check=_check_elastic,
        since="0.18",
    ),
    AdmissionRule(
        kinds=_JOB_KINDS | _SERVING,
        refuses="gates of admission that are no names with a domain, or stand there twice",
        source="pkg/util/webhook/validation_admissiongatedby.go",
        check=_check_gates,
        since="0.19",
    ),
    AdmissionRule(
        refuses="two topologies of a pod set, one that is no label, and slices without size or larger than the set",
        source=f"{_JOBFRAMEWORK}/tas_validation.go",
        check=_check_topologies,
    ),
    AdmissionRule(
        refuses="slices in layers that are not 1 to 3, do not divide each other, or are larger than the set",
        source=f"{_JOBFRAMEWORK}/tas_validation.go",
        check=_check_layers,
        since="0.19",
    ),
    AdmissionRule(
        refuses="a group of pod sets whose name is a number, or which has slices",
        source=f"{_JOBFRAMEWORK}/tas_validation.go",
        check=_check_group_names,
    ),
    AdmissionRule(
        refuses="a group of pod sets without a required or preferred topology",
        source=f"{_JOBFRAMEWORK}/tas_validation.go",
        check=_check_grouped_topology,
        since="0.17",
    ),
    AdmissionRule(
        kinds=_GROUPING,
        refuses="a group of other than two pod sets, of two larger than one pod, or with two topologies",
        source=f"{_JOBFRAMEWORK}/tas_validation.go",
        check=_check_groups,
        since="0.17",
    ),
    AdmissionRule(
        kinds=frozenset({_JOB}),
        refuses="a minimal parallelism out of reach, and completions that do not follow the parallelism",
        source=f"{_JOBS}/job/job_webhook.go",
        check=_check_job,
    ),
    AdmissionRule(
        kinds=frozenset(_RAY),
        refuses="Ray's own autoscaler, too many groups, a group `head`, and a RayJob that leaves its cluster",
        source=f"{_JOBS}/raycluster/common.go",
        check=_check_ray,
    ),
    AdmissionRule(
        kinds=frozenset({_POD}),
        refuses="a group of pods without a name or a number",
        source=f"{_JOBS}/pod/pod_webhook.go",
        check=_check_pod,
    ),
)
