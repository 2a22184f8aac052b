"""Placements whose GPUs nobody has used for a while, by what NVIDIA's DCGM exporter tells Prometheus of their pods.

The exporter has a series for each GPU, and for each slice of one. In Kubernetes it names the pod that has it by the
labels ``namespace`` and ``pod``
(https://docs.nvidia.com/datacenter/dcgm/latest/reference/command-line-reference/dcgm-exporter.html), which Prometheus
calls ``exported_namespace`` and ``exported_pod`` where a scrape does not honour them (``honor_labels`` of
https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config). Which cluster a series is from
is a label that Prometheus adds. A pod whose GPUs are not all measured, or more of them than it has, is never idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

from reconciler.core.signals.prometheus import answer_series, quoted
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.capacity import ClusterObservation, GpuPod, Observed
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.units import format_duration
from reconciler.model.workload import Json
from reconciler.text.wording import count

METRICS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
"""Percent of time in use, and the share of time in which the engine was active, which slices of GPUs have as well.

Both are as in ``etc/default-counters.csv`` and ``etc/dcp-metrics-included.csv`` of
https://github.com/NVIDIA/dcgm-exporter; either may be absent.
"""
STEPS = 6
"""Parts of the idle time, each of which needs a sample: a GPU that was not measured may have been used."""
_ROUND = timedelta(minutes=1)
"""Most time between two rounds of questions; each reads a whole idle time of each GPU."""
_MOST_IDLE_TIMES = 8
"""Different idle times that are asked for; the other ones go by the longest."""
_MOST_NAMES = 100
"""Names in a query; of more, all are asked for."""
_KIND, _METRIC = "overspill_value", "overspill_metric"
"""Labels of our own in answers."""
_MOST, _RECENT, _COVERED, _NOW = "most", "recent", "covered", "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTerm:
    """A placement that is to end when its GPUs have not been used for so long."""

    cluster: ClusterName
    placement: PlacementName
    idle: timedelta
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuQuestion:
    """A query about the use of GPUs throughout one idle time."""

    idle: timedelta
    text: str
    label: str
    """The label that names the cluster."""


class PodKey(NamedTuple):
    """A pod of one cluster, as series name it."""

    cluster: str
    namespace: str
    pod: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUse:
    """What is known of the GPUs of a pod throughout an idle time."""

    measured: int
    """GPUs with a value now."""
    idle: int
    """GPUs with a value now and in each part of the idle time."""
    used: bool
    """Whether any GPU was in use at any time."""

    def is_idle(self, gpus: int) -> bool:
        """Return whether a pod with so many GPUs has used none of them."""
        return not self.used and gpus > 0 and self.measured == self.idle == gpus


PodUses: TypeAlias = Mapping[PodKey, PodUse]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAnswer:
    """The answer to a question: all pods with GPUs that it tells of."""

    at: datetime
    pods: PodUses


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAnswers:
    """The last answers to all questions."""

    answers: Mapping[GpuQuestion, GpuAnswer] = field(default_factory=dict)
    trouble: str = ""
    """Why the newest answers are missing, if they are."""


# Questions


def questions(terms: Iterable[IdleTerm], observed: Observed, label: str) -> tuple[GpuQuestion, ...]:
    """Ask for the pods of placements that are to end when idle: one question for each idle time, all clusters in it.

    Of many idle times the longer ones go by the longest: they end later, and none too early.
    """
    asked = [(term, pods) for term in terms if (pods := _pods(term, observed))]
    times = sorted({term.idle for term, _ in asked})
    return tuple(
        GpuQuestion(
            idle=idle,
            text=_text(
                idle,
                label,
                {str(term.cluster) for term, _ in asked},
                {pod.namespace for _, pods in asked for pod in pods},
            ),
            label=label,
        )
        for idle in (times if len(times) <= _MOST_IDLE_TIMES else (*times[: _MOST_IDLE_TIMES - 1], times[-1]))
    )


def round_interval(asked: Iterable[GpuQuestion], *, least: timedelta, max_age: timedelta) -> timedelta:
    """Return the time between two rounds: a minute, or less where idle times or the life of answers are short.

    There are `STEPS` rounds in each idle time, and two in `max_age`, the age up to which an answer counts. It is no
    shorter than `least`.
    """
    shortest = min((question.idle for question in asked), default=STEPS * _ROUND)
    return max(least, min(_ROUND, shortest / STEPS, max_age / 2))


def _pods(term: IdleTerm, observed: Observed) -> tuple[GpuPod, ...]:
    seen = observed.clusters.get(term.cluster)
    return () if seen is None else seen.gpu_pods.get(term.placement, ())


def _text(idle: timedelta, label: str, clusters: set[str], namespaces: set[str]) -> str:
    """Write the query: for each GPU its highest values, the number of steps that have one, and its value now.

    Each value of the steps is the highest since the step before, so that no sample is left out; the steps are at
    multiples of their length, and what came after the last one is in the recent value. The value now is one that
    Prometheus has at this moment, no older than its lookback.
    """
    step = max(1, -(-idle // timedelta(milliseconds=STEPS)))
    names = f"{label},namespace,pod,exported_namespace,exported_pod,UUID,gpu,GPU_I_ID"
    cluster, namespace = f'{label}=~"{_any_of(clusters)}"', _any_of(namespaces)
    pods = (f'namespace=~"{namespace}",pod!="",exported_pod=""', f'exported_namespace=~"{namespace}",exported_pod!=""')
    selectors = [(metric, f"{metric}{{{cluster},{pod}}}") for metric in METRICS for pod in pods]
    now = " or ".join(_labelled(f"max by ({names}) ({series})", _METRIC, metric) for metric, series in selectors)
    recent = " or ".join(
        _labelled(f"max by ({names}) (max_over_time({series}[{step}ms]))", _METRIC, metric)
        for metric, series in selectors
    )
    over = f"({recent})[{STEPS * step}ms:{step}ms]"
    parts = {
        _MOST: f"max_over_time({over})",
        _RECENT: f"({recent})",
        _COVERED: f"count_over_time({over})",
        _NOW: f"({now})",
    }
    return " or ".join(_labelled(part, _KIND, kind) for kind, part in parts.items())


def _labelled(query: str, label: str, value: str) -> str:
    return f'label_replace({query},"{label}","{value}","","")'


def _any_of(names: set[str]) -> str:
    """Write a pattern of names, which have no characters but those of Kubernetes' names."""
    return "|".join(map(quoted, sorted(names))) if len(names) <= _MOST_NAMES else ".+"


# Answers


def read_answer(answer: Json, question: GpuQuestion) -> PodUses:
    """Read what an answer tells of each pod. Raises InvalidInput for one that is not Prometheus's."""
    most: dict[PodKey, float] = {}
    measured: dict[PodKey, set[tuple[str, ...]]] = {}
    covered: dict[PodKey, set[tuple[str, ...]]] = {}
    for labels, value in answer_series(answer):
        prefix = "exported_" if labels.get("exported_pod") else ""
        key = PodKey(
            labels.get(question.label, ""), labels.get(f"{prefix}namespace", ""), labels.get(f"{prefix}pod", "")
        )
        gpu = tuple(labels.get(name, "") for name in ("UUID", "gpu", "GPU_I_ID"))
        kind = labels.get(_KIND)
        if kind not in (_MOST, _RECENT, _COVERED, _NOW):
            raise InvalidInput("the answer is not to the question")
        if kind == _COVERED:
            covered.setdefault(key, set()).update([gpu] if value >= STEPS else ())
            continue
        most[key] = max(most.get(key, 0), abs(value) if value == value else 1)  # noqa: PLR0124 - NaN is no rest
        if kind == _NOW:
            measured.setdefault(key, set()).add(gpu)
    return {
        key: PodUse(
            measured=len(measured.get(key, ())),
            idle=len(measured.get(key, set()) & covered.get(key, set())),
            used=highest > 0,
        )
        for key, highest in sorted(most.items())
    }


def with_unused_gpus(
    observed: Observed, terms: Iterable[IdleTerm], told: GpuAnswers, *, now: datetime, max_age: timedelta
) -> Observed:
    """Add since when the GPUs of placements have not been used, and warnings of those whose use is unknown.

    An answer that is older than `max_age` tells nothing. What an observation tells itself stands.
    """
    unused: dict[ClusterName, dict[PlacementName, datetime]] = {}
    unknown: dict[ClusterName, list[PlacementName]] = {}
    claiming: dict[ClusterName, list[PlacementName]] = {}
    for term in terms:
        pods = _pods(term, observed)
        answer = _answer(term.idle, told, now, max_age)
        if not pods or answer is None:
            continue
        question, given = answer
        uses = [(pod, given.pods.get(PodKey(term.cluster, pod.namespace, pod.name))) for pod in pods]
        if all(use is not None and use.is_idle(pod.gpus) for pod, use in uses):
            unused.setdefault(term.cluster, {})[term.placement] = given.at - question.idle
        elif now - term.changed_at < question.idle:
            continue
        elif any(not pod.gpus for pod in pods):
            claiming.setdefault(term.cluster, []).append(term.placement)
        elif any(use is None or not (use.used or use.is_idle(pod.gpus)) for pod, use in uses):
            unknown.setdefault(term.cluster, []).append(term.placement)
    problems = (
        *_trouble(told.trouble, max_age),
        *(_unknown(cluster, unknown[cluster]) for cluster in sorted(unknown)),
        *(_claiming(cluster, claiming[cluster]) for cluster in sorted(claiming)),
    )
    clusters = {name: _with_unused(seen, unused.get(name)) for name, seen in observed.clusters.items()}
    if not problems and not unused:
        return observed
    return replace(observed, clusters=clusters, problems=(*observed.problems, *problems))


def _answer(
    idle: timedelta, told: GpuAnswers, now: datetime, max_age: timedelta
) -> tuple[GpuQuestion, GpuAnswer] | None:
    """Return the answer about the shortest time that is not below an idle time; None where none is young enough."""
    fresh = [
        (question, answer)
        for question, answer in told.answers.items()
        if question.idle >= idle and timedelta() <= now - answer.at <= max_age
    ]
    return min(fresh, key=lambda entry: entry[0].idle, default=None)


def _with_unused(seen: ClusterObservation, unused: Mapping[PlacementName, datetime] | None) -> ClusterObservation:
    return seen if unused is None else replace(seen, unused={**unused, **seen.unused})


def _trouble(trouble: str, max_age: timedelta) -> tuple[Problem, ...]:
    if not trouble:
        return ()
    kept = f"what it said counts for {format_duration(max_age)}, and then no GPU counts as idle"
    message = f"cannot be asked whether GPUs are used ({kept}): {trouble}"
    return (Problem(path="prometheus", message=message, severity=Severity.WARNING),)


def _unknown(cluster: ClusterName, placements: list[PlacementName]) -> Problem:
    return Problem(
        path=f"cluster {cluster}",
        message=f"Prometheus does not say whether the GPUs of {_named(placements)} are used, so that they never count"
        " as idle",
        hint=f"measure each GPU at least {STEPS} times in the idle time: try DCGM exporter there, and {cluster} in the"
        " label that OVERSPILL_PROMETHEUS_CLUSTER_LABEL names",
        severity=Severity.WARNING,
    )


def _claiming(cluster: ClusterName, placements: list[PlacementName]) -> Problem:
    return Problem(
        path=f"cluster {cluster}",
        message=f"pods of {_named(placements)} claim devices, whose number is unknown, and never count as idle",
        hint="leave the idle time out of its terms, or let them expire",
        severity=Severity.WARNING,
    )


def _named(placements: list[PlacementName]) -> str:
    more = f" and {count(len(placements) - 1, 'more placement')}" if len(placements) > 1 else ""
    return f"{min(placements)}{more}"
