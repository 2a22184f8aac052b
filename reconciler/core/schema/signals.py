"""The signals of a BurstPolicy: what asks for replicas beside what clusters report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from reconciler.core.expressions import dialect
from reconciler.core.schema.errors import nearest_name
from reconciler.core.schema.strict_model import Duration, Name, Strict, Text, refusal
from reconciler.model.policy import Query, Schedule
from reconciler.text.findings import shortened

_FIELDS = 5
_EXAMPLE = "try '0 8 * * 1-5'"
_LONGEST_QUERY = 4096
"""Characters of a query, which travels in an address that servers bound."""
_LONGEST = timedelta(days=31)
"""Of one window: what lasts for longer is no planned burst."""


def _cron(text: str) -> str:
    """Refuse what is not a crontab's five fields, or names a day that no month has."""
    if len(text.split()) != _FIELDS or len(text) > _FIELDS * 60:
        raise refusal(f"{shortened(text)!r} is not five fields: minute, hour, day, month, weekday", _EXAMPLE)
    try:
        CronSim(text, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        said = str(error).removeprefix("Bad ")
        raise refusal(f"{shortened(text)!r} has no such {said}", _EXAMPLE) from error
    return text


def _zone(text: str) -> str:
    """Refuse what is no IANA time zone; the machine's own is none either, since machines differ."""
    try:
        if text != "localtime":
            ZoneInfo(text)
            return text
    except (KeyError, ValueError, OSError):  # not known, not a name at all, or a directory of zones
        pass
    meant = nearest_name(text[:100], available_timezones()) or "Europe/Berlin"
    raise refusal(f"{shortened(text)!r} is not a time zone", f"try '{meant}'")


def _lasting(duration: timedelta) -> timedelta:
    """Refuse a window that is no burst."""
    if duration > _LONGEST:
        raise refusal("is longer than 31 days", "try '12h'")
    return duration


def _query(text: str) -> str:
    """Refuse a query whose expressions say what none can."""
    if len(text) > _LONGEST_QUERY:
        raise refusal(f"is longer than {_LONGEST_QUERY} characters", "try a recording rule")
    if dialect.has_expression(text):
        for fault in dialect.read(text, dialect.QUERY).faults:
            raise refusal(fault.message, fault.hint)
    return text


Cron = Annotated[str, AfterValidator(_cron), WithJsonSchema({"type": "string", "examples": ["0 8 * * 1-5"]})]
Zone = Annotated[str, AfterValidator(_zone), WithJsonSchema({"type": "string", "examples": ["Europe/Berlin"]})]
Replicas = Annotated[int, Field(ge=1, le=100_000)]


class ScheduleFile(Strict):
    """A planned burst: replicas that are asked for from each start on, for so long."""

    start: Cron = Field(description="When it begins: minute, hour, day, month, weekday (0 and 7 are Sunday).")
    duration: Annotated[Duration, AfterValidator(_lasting)] = Field(description="How long it lasts; 31 days at most.")
    time_zone: Zone = Field("UTC", description="The IANA time zone that the start is read in.")
    replicas: Replicas = Field(description="How many replicas are wanted elsewhere meanwhile.")

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
        None, description="How much of the value one replica takes; the value divided by it is missing, rounded up."
    )
    above: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        None, description="More than this asks for replicas."
    )
    replicas: Replicas | None = Field(None, description="How many replicas are missing while it is above.")

    @model_validator(mode="after")
    def _one_way(self) -> PrometheusFile:
        """Refuse a value that is read in two ways or in none."""
        if (self.per_replica is None) == (self.above is None):
            both = self.above is not None
            raise refusal(
                "has both perReplica and above" if both else "has neither perReplica nor above",
                "try two signals" if both else "try perReplica: 10",
            )
        if (self.above is None) != (self.replicas is None):
            wanting = self.above is not None
            raise refusal(
                "has above without replicas" if wanting else "has replicas beside perReplica",
                "try replicas: 1" if wanting else "try without replicas, or above",
            )
        return self

    def value_of(self, name: str) -> Query:
        """Make the model's value."""
        return Query(
            name=name, text=self.query, per_replica=self.per_replica, above=self.above, replicas=self.replicas or 0
        )


class SignalFile(Strict):
    """One signal, by its name and in exactly one way."""

    name: Name = Field(description="What commits and tables call it.")
    schedule: ScheduleFile | None = Field(None, description="A planned burst.")
    prometheus: PrometheusFile | None = Field(None, description="A question to Prometheus.")

    @model_validator(mode="after")
    def _one_way(self) -> SignalFile:
        """Refuse a signal of two kinds or of none."""
        if (self.schedule is None) == (self.prometheus is None):
            both = self.schedule is not None
            raise refusal(
                "has both schedule and prometheus" if both else "has neither schedule nor prometheus",
                "try two signals" if both else "add one of them",
            )
        return self


def _told_apart(signals: Sequence[SignalFile]) -> Sequence[SignalFile]:
    """Refuse two signals of one name: nobody could tell which one a commit speaks of."""
    names = [signal.name for signal in signals]
    twice = [name for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise refusal(f"two signals are named {twice[0]}", "try another name")
    return signals


Signals = Annotated[list[SignalFile], AfterValidator(_told_apart)]
