"""The signals of a BurstPolicy: sources of demand beside the observations of clusters.

A kind of signal is a model here that makes the value of `core.signals`, and a field of `SignalFile`, the register.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Protocol
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from reconciler.core.expressions import dialect
from reconciler.core.schema.strict_model import Duration, Name, Strict, Text, refusal
from reconciler.core.signals.forecast import Forecast, Method
from reconciler.core.signals.past_demand import STEP
from reconciler.core.signals.prometheus import Query
from reconciler.core.signals.schedule import Schedule
from reconciler.core.signals.slurm import PendingGpus
from reconciler.model.signal import Signal
from reconciler.text.findings import shortened
from reconciler.text.spelling import suggested

_FIELDS = 5
_EXAMPLE = "try '0 8 * * 1-5'"
_LONGEST_QUERY = 4096
"""Characters of a query. Queries are sent in URLs, whose length servers bound."""
_LONGEST_WINDOW = timedelta(days=31)
_LONGEST_PARTITION = 255


_FARTHEST = timedelta(hours=6)
"""The longest time that a forecast looks ahead, and that a trend is worked out from."""
_TREND_WINDOW = timedelta(minutes=30)


def _cron(text: str) -> str:
    """Refuse a text without the five fields of a crontab, or with a day that no month has."""
    if len(text.split()) != _FIELDS or len(text) > _FIELDS * 60:
        raise refusal(f"{shortened(text)!r} is not five fields: minute, hour, day, month, weekday", _EXAMPLE)
    try:
        CronSim(text, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        field = str(error).removeprefix("Bad ")
        raise refusal(f"{shortened(text)!r} has no such {field}", _EXAMPLE) from error
    return text


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    """Return the names of all time zones, which are files of the system."""
    return frozenset(available_timezones())


def _zone(text: str) -> str:
    """Refuse a name that is no IANA time zone, and ``localtime``, which differs between machines."""
    try:
        if text != "localtime":
            ZoneInfo(text)
            return text
    except (KeyError, ValueError, OSError):  # not known, not a name at all, or a directory of zones
        pass
    suggestion = suggested(text, _zones()) or "Europe/Berlin"
    raise refusal(f"{shortened(text)!r} is not a time zone", f"try '{suggestion}'")


def _window(duration: timedelta) -> timedelta:
    """Refuse a window longer than a burst may last."""
    if duration > _LONGEST_WINDOW:
        raise refusal("is longer than 31 days", "try '12h'")
    return duration


def _reach(duration: timedelta) -> timedelta:
    """Refuse to look further ahead than anybody would pay for."""
    if duration > _FARTHEST:
        raise refusal("is longer than 6 hours", "try '10m'")
    return duration


def _trend_window(duration: timedelta) -> timedelta:
    """Refuse a window with too few steps for a trend, or with more than a trend lasts."""
    if not 2 * STEP <= duration <= _FARTHEST:
        raise refusal("is not between 10 minutes and 6 hours", "try '30m'")
    return duration


def _query(text: str) -> str:
    """Refuse a query that is too long, or whose expressions are outside of the query dialect."""
    if len(text) > _LONGEST_QUERY:
        raise refusal(f"is longer than {_LONGEST_QUERY} characters", "try a recording rule")
    if dialect.has_expression(text):
        for fault in dialect.read_expression(text, dialect.QUERY).faults:
            raise refusal(fault.message, fault.hint)
    return text


def _partition(text: str) -> str:
    """Refuse several partitions: it is not said which of them a job that may start in two would wait for."""
    if re.search(r"[\s,]", text) or len(text) > _LONGEST_PARTITION:
        raise refusal(
            f"{shortened(text)!r} is not the name of one partition", "name one; of several signals the highest counts"
        )
    return text


Partition = Annotated[Text, AfterValidator(_partition)]
Cron = Annotated[str, AfterValidator(_cron), WithJsonSchema({"type": "string", "examples": ["0 8 * * 1-5"]})]
Zone = Annotated[str, AfterValidator(_zone), WithJsonSchema({"type": "string", "examples": ["Europe/Berlin"]})]
WindowLength = Annotated[Duration, AfterValidator(_window)]
Replicas = Annotated[int, Field(ge=1, le=100_000)]


class ScheduleFile(Strict):
    """A planned burst: replicas that are asked for from each start on, for so long."""

    start: Cron = Field(description="When it begins: minute, hour, day, month, weekday (0 and 7 are Sunday).")
    duration: WindowLength = Field(description="Duration; 31 days at most.")
    time_zone: Zone = Field("UTC", description="The IANA time zone that the start is read in.")
    replicas: Replicas = Field(description="Replicas that burst meanwhile.")

    def value_of(self, name: str) -> Schedule:
        """Make the model's value."""
        return Schedule(
            name=name, start=self.start, duration=self.duration, zone=self.time_zone, replicas=self.replicas
        )


class PrometheusFile(Strict):
    """A number that Prometheus tells, and the replicas that it comes to."""

    query: Annotated[Text, AfterValidator(_query)] = Field(
        description="PromQL of one value, in which {{ namespace }} and {{ name }} name the workload."
    )
    per_replica: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        None, description="Value per replica; the value divided by it, rounded up, is missing."
    )
    above: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        None, description="More than this asks for replicas."
    )
    replicas: Replicas | None = Field(None, description="Replicas that are missing while the value is above.")

    @model_validator(mode="after")
    def _refuse_several_values(self) -> PrometheusFile:
        """Refuse a signal that reads its value in two ways or in none."""
        if (self.per_replica is None) == (self.above is None):
            both = self.above is not None
            raise refusal(
                "has both perReplica and above" if both else "has neither perReplica nor above",
                "try two signals" if both else "try perReplica: 10",
            )
        if (self.above is None) != (self.replicas is None):
            limited = self.above is not None
            raise refusal(
                "has above without replicas" if limited else "has replicas beside perReplica",
                "try replicas: 1" if limited else "try without replicas, or above",
            )
        return self

    def value_of(self, name: str) -> Query:
        """Make the model's value."""
        return Query(
            name=name, text=self.query, per_replica=self.per_replica, above=self.above, replicas=self.replicas or 0
        )


class SlurmFile(Strict):
    """GPUs that waiting jobs of a Slurm partition ask for, and the replicas that they come to."""

    partition: Partition = Field(description="The partition of Slurm whose pending jobs count.")
    gpus_per_replica: Annotated[int, Field(ge=1, le=100_000)] = Field(
        description="GPUs per replica; the pending GPUs divided by it, rounded up, are missing."
    )

    def value_of(self, name: str) -> PendingGpus:
        """Make the model's value."""
        return PendingGpus(name=name, partition=self.partition, gpus_per_replica=self.gpus_per_replica)


class ForecastFile(Strict):
    """Replicas that are likely to be missing soon, by the demand of the past."""

    method: Annotated[Method, Field(strict=False)] = Field(description="What it goes by.")
    ahead: Annotated[Duration, AfterValidator(_reach)] = Field(
        timedelta(minutes=10), description="How long before they are missing replicas are asked for; 6h at most."
    )
    window: Annotated[Duration, AfterValidator(_trend_window)] | None = Field(
        None, description="The time that a Trend is worked out from, 10m to 6h; 30m by default."
    )

    @model_validator(mode="after")
    def _refuse_window_without_trend(self) -> ForecastFile:
        """Refuse a window that has no effect."""
        if self.window is not None and self.method is not Method.TREND:
            raise refusal(f"has a window, which {self.method} does not use", "try without window, or method: Trend")
        return self

    def value_of(self, name: str) -> Forecast:
        """Make the model's value."""
        return Forecast(name=name, method=self.method, ahead=self.ahead, window=self.window or _TREND_WINDOW)


class KindFile(Protocol):
    """A kind of signal, as written in a file."""

    def value_of(self, name: str) -> Signal:
        """Make the model's value."""
        ...


class SignalFile(Strict):
    """A signal: its name and exactly one kind."""

    name: Name = Field(description="What commits and tables call it; unique in the policy.")
    # The register: one line for each kind of signal.
    schedule: ScheduleFile | None = Field(
        None, description="A planned burst; either this, `forecast`, `prometheus` or `slurm`."
    )
    prometheus: PrometheusFile | None = Field(None, description="A question to Prometheus.")
    slurm: SlurmFile | None = Field(None, description="Pending jobs of a Slurm partition.")
    forecast: ForecastFile | None = Field(None, description="Replicas that are likely to be missing soon.")

    @property
    def kinds(self) -> Mapping[str, KindFile]:
        """The kinds of signals that the entry gives, by field."""
        files = {field: getattr(self, field) for field in _KINDS}
        return {field: file for field, file in files.items() if file is not None}

    @model_validator(mode="after")
    def _refuse_several_kinds(self) -> SignalFile:
        """Refuse a signal of two kinds or of none."""
        given = list(self.kinds)
        if not given:
            raise refusal(f"has neither {' nor '.join(_KINDS)}", "add one of them")
        if len(given) > 1:
            raise refusal(f"has both {given[0]} and {given[1]}", "try two signals")
        return self

    def value_of(self) -> Signal:
        """Make the model's value."""
        (kind,) = self.kinds.values()
        return kind.value_of(self.name)


_KINDS = tuple(field for field in SignalFile.model_fields if field != "name")


def _unique_names(signals: Sequence[SignalFile]) -> Sequence[SignalFile]:
    """Refuse two signals of one name: a commit that names it would be ambiguous."""
    names = [signal.name for signal in signals]
    duplicates = [name for index, name in enumerate(names) if name in names[:index]]
    if duplicates:
        raise refusal(f"two signals are named {duplicates[0]}", "try another name")
    return signals


Signals = Annotated[list[SignalFile], AfterValidator(_unique_names)]
