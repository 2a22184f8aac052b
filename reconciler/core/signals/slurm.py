"""Jobs that wait in a partition of Slurm: the signal `slurm` of a BurstPolicy.

The format of answers is that of slurmrestd's ``GET /slurm/<version>/jobs/`` (https://slurm.schedmd.com/rest_api.html),
the same from v0.0.40 to v0.0.45 in the fields that are read here: states are a list and numbers are objects with
``set``, ``infinite`` and ``number``. The plain words and numbers of older versions are read alike.

Only jobs that wait for room are demand (https://slurm.schedmd.com/job_reason_codes.html): more nodes do not help those
that are held, wait for another job or for their time, or have used up what their account may have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from reconciler.core.signals.question import MOST, Question, SourcedSignal
from reconciler.errors import InvalidInput, Problem
from reconciler.model.policy import Desired
from reconciler.model.workload import Json

JOBS = "jobs"
"""The one question there is: slurmrestd tells all jobs, and of no partition alone."""
_WAITING = frozenset({"Resources", "Priority"})
"""Reasons of jobs that start once there is room."""
_NOT_YET = frozenset({"COMPLETING", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT", "REVOKED"})
"""States beside PENDING of a job that still ends elsewhere, or is held."""
_GPU = re.compile(r"(?:gres[/:])?gpu(?::(?P<model>[^:=,]+))??(?:[:=](?P<count>[0-9]{1,9}))?")
"""``gres/gpu=8`` and ``gres/gpu:h100=8`` of requests, ``gres/gpu:8`` and the older ``gpu:h100:8`` of options."""
_TASKS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")
_MOST_UNREADABLE = 100
_MOST_PARTITIONS = 1000
_REQUESTS = (
    ("tres_per_job", ()),
    ("tres_per_node", ("node_count",)),
    ("tres_per_task", ("tasks",)),
    ("tres_per_socket", ("sockets_per_node", "node_count")),
)
"""Where a job asks for GPUs, and what they are multiplied by, where ``tres_req_str`` does not add them up.

It does only where the accounting tracks them (``AccountingStorageTRES`` in https://slurm.schedmd.com/slurm.conf.html).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingJob:
    """A job with GPUs that waits for room; or a component of a heterogeneous one, or all waiting tasks of an array."""

    id: int
    """Of a heterogeneous job, that of its first component."""
    tasks: int
    """Tasks of an array that wait; 1 for any other job."""
    partitions: tuple[str, ...]
    """The job may start in any of them."""
    gpus: int
    """Of all tasks and nodes."""
    since: datetime | None
    """When it could have started; None where Slurm does not say."""
    unreadable: str = ""
    """Why nothing of the job could be read but that it is one: it counts for no partition. Empty for all others."""


Jobs: TypeAlias = tuple[PendingJob, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingGpus(SourcedSignal[Jobs]):
    """The GPUs that waiting jobs of a partition ask for, and the replicas that they come to."""

    name: str
    partition: str
    gpus_per_replica: int

    @property
    def label(self) -> str:
        """Name of the signal in commits, tables and messages."""
        return f"slurm {self.name}"

    @property
    def source(self) -> str:
        """The service that is asked."""
        return "Slurm"

    def replicas_for(self, answer: Jobs) -> int:
        """Count the replicas that hold the GPUs of all jobs."""
        gpus = sum(job.gpus for job in self._mine(answer))
        return min(MOST, -(-gpus // self.gpus_per_replica))

    def lasting(self, answer: Jobs, past: Jobs | None, since: datetime) -> int:
        """Count the replicas for the jobs that have waited since then."""
        del past
        return self.replicas_for(tuple(job for job in answer if job.since is not None and job.since <= since))

    def cause(self, answer: Jobs) -> str:
        """Count jobs and GPUs, in a clause that follows the label."""
        mine = self._mine(answer)
        jobs = sum({job.id: job.tasks for job in mine}.values())
        gpus = sum(job.gpus for job in mine)
        unreadable = [job.unreadable for job in answer if job.unreadable]
        beside = f", beside {len(unreadable)} that cannot be read ({unreadable[0]})" if unreadable else ""
        return (
            f"has {jobs} pending job{'s' * (jobs != 1)} with {gpus} GPU{'s' * (gpus != 1)}{beside}, "
            f"and a replica takes {self.gpus_per_replica}"
        )

    def _mine(self, jobs: Jobs) -> Jobs:
        return tuple(job for job in jobs if self.partition in job.partitions)


def questions(desired: Desired) -> tuple[tuple[Question[Jobs], ...], tuple[Problem, ...]]:
    """List the questions about every workload that may burst; none of them can fail."""
    asked = tuple(
        Question(
            workload=workload,
            policy=policy.name,
            signal=signal,
            text=JOBS,
            past="",  # jobs say themselves since when they wait
            window=policy.scale_up_window,
        )
        for workload, policy in desired.policies.items()
        for signal in policy.signals
        if isinstance(signal, PendingGpus) and desired.templates[workload].ref is not None
    )
    return asked, ()


# Answers


def pending_jobs(answer: Json) -> Jobs:
    """Read the jobs that wait for room and ask for GPUs.

    A job that cannot be read is in the list as such. Raises InvalidInput for an answer in which none can be.
    """
    jobs = answer.get("jobs") if isinstance(answer, Mapping) else None
    if not isinstance(jobs, list):
        raise InvalidInput("the answer is not Slurm's: it has no list of jobs")
    read = [_job(job, f"jobs[{index}]") for index, job in enumerate(jobs)]
    good = [job for job in read if isinstance(job, _Job)]
    bad = [job for job in read if isinstance(job, str)]
    if bad and not good:
        raise InvalidInput(f"the answer is not Slurm's: {bad[0]}")
    running = Counter(job.array for job in good if "RUNNING" in job.states)
    waiting = (_pending(job, running) for job in good if _waits(job))
    unreadable = (
        PendingJob(id=0, tasks=0, partitions=(), gpus=0, since=None, unreadable=why) for why in bad[:_MOST_UNREADABLE]
    )
    return (*(job for job in waiting if job.gpus), *unreadable)


@dataclass(frozen=True, slots=True)
class _Job:
    """A job of an answer, as far as it says which job it is and how it stands."""

    fields: Mapping[str, Json]
    states: frozenset[str]
    reason: str
    array: int


def _job(value: Json, path: str) -> _Job | str:
    """Read a job, or say why it cannot be."""
    if not isinstance(value, Mapping):
        return f"{path} is no object"
    state = value.get("job_state")
    if not isinstance(state, (str, list)):
        return f"{path}.job_state is no state"
    reason = value.get("state_reason")
    if reason is not None and not isinstance(reason, str):
        return f"{path}.state_reason is no text"
    return _Job(value, _words(state), reason or "", _number(value.get("array_job_id")))


def answer_error(answer: Json) -> str:
    """Read the first error of an answer; empty where there is none."""
    errors = answer.get("errors") if isinstance(answer, Mapping) else None
    if not isinstance(errors, list) or not errors or not isinstance(errors[0], Mapping):
        return ""
    return str(errors[0].get("description") or errors[0].get("error") or "an error without words")


def _waits(job: _Job) -> bool:
    """Return whether a job would start if there were room."""
    return "PENDING" in job.states and job.states.isdisjoint(_NOT_YET) and job.reason in _WAITING


def _pending(read: _Job, running: Mapping[int, int]) -> PendingJob:
    job = read.fields
    tasks = _tasks(job, running)
    partition = job.get("partition")
    return PendingJob(
        id=_number(job.get("het_job_id")) or _number(job.get("job_id")),
        tasks=tasks,
        partitions=tuple(partition.split(",")[:_MOST_PARTITIONS]) if isinstance(partition, str) else (),
        gpus=tasks * _gpus_of(job),
        since=_moment(job.get("eligible_time")) or _moment(job.get("submit_time")),
    )


def _tasks(job: Mapping[str, Json], running: Mapping[int, int]) -> int:
    """Count the tasks of an array that wait and that its own limit (``%4``) lets start.

    A long list ends in dots; it counts as far as it goes.
    """
    text = job.get("array_task_string")
    if not isinstance(text, str) or not text:
        return 1
    tasks = sum(_range(part) for part in text.partition("%")[0].split(","))
    limit = _number(job.get("array_max_tasks"))
    if limit:
        tasks = min(tasks, limit - running.get(_number(job.get("array_job_id")), 0))
    return max(1, min(MOST, tasks))


def _range(text: str) -> int:
    """Count the tasks of ``7``, ``1-9`` or ``0-30:2``; anything else has none."""
    match = _TASKS.fullmatch(text)
    if match is None:
        return 0
    first, last, step = match[1], match[2] or match[1], match[3] or "1"
    return max(0, (int(last) - int(first)) // max(1, int(step)) + 1)


def _gpus_of(job: Mapping[str, Json]) -> int:
    """Count the GPUs that a job asks for, on all its nodes."""
    if gpus := _gpus(job.get("tres_req_str")):
        return gpus
    for field, factors in _REQUESTS:
        gpus = _gpus(job.get(field))
        for factor in factors:
            gpus *= max(1, _number(job.get(factor)))
        if gpus:
            return gpus
    return 0


def _gpus(text: Json) -> int:
    """Add up the GPUs of a list of resources. A number for all models holds those of each."""
    counts: dict[bool, int] = {True: 0, False: 0}
    for part in text.split(",") if isinstance(text, str) else ():
        if match := _GPU.fullmatch(part.strip()):
            counts[match["model"] is None] += int(match["count"] or 1)
    return counts[True] or counts[False]


def _words(value: Json) -> frozenset[str]:
    """Read a state: a list of words, or one word."""
    words: Iterable[Json] = value if isinstance(value, list) else (value,)
    return frozenset(word for word in words if isinstance(word, str))


def _number(value: Json) -> int:
    """Read a number, plain or as an object; 0 where it is not set, infinite or no number."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else 0
    number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    return number if 0 <= number < 1 << 32 else 0


def _moment(value: Json) -> datetime | None:
    """Read a time in seconds since 1970; None where it is not set."""
    seconds = _number(value)
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
