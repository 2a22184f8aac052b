"""Taints and tolerations, as Kubernetes writes them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from reconciler.core.pods.taints import toleration_faults
from reconciler.core.schema.strict_model import Strict, Text, refusal
from reconciler.model.kubernetes.scheduling import Taint, Toleration


class TaintEffect(StrEnum):
    """The effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class AnyEffect(StrEnum):
    """The effects that a toleration may name; the empty one stands for all."""

    ANY = ""
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Operator(StrEnum):
    """How a toleration compares."""

    EQUAL = "Equal"
    EXISTS = "Exists"


EffectField = Annotated[TaintEffect, Field(strict=False)]


class TaintFile(Strict):
    """A taint as Kubernetes writes it."""

    key: Text = Field(description="The taint's key.")
    value: str = Field("", description="Its value.")
    effect: EffectField = Field(TaintEffect.NO_SCHEDULE, description="What it does to pods that do not tolerate it.")
    time_added: str = Field("", description="Exported by kubectl; not read.")

    def value_of(self) -> Taint:
        """Make the model's value."""
        return Taint(key=self.key, value=self.value, effect=str(self.effect))


class TolerationFile(Strict):
    """A toleration as in a pod spec."""

    key: str = Field("", description="The taint's key; empty with `Exists`: every taint.")
    operator: Annotated[Operator, Field(strict=False)] = Field(Operator.EQUAL, description="How it compares.")
    value: str = Field("", description="The taint's value, with `Equal`.")
    effect: Annotated[AnyEffect, Field(strict=False)] = Field(
        AnyEffect.ANY, description="The taint's effect; none: every effect."
    )
    toleration_seconds: int | None = Field(None, description="Set on pods; read in a WorkloadSpread only.")

    def value_of(self) -> Toleration:
        """Make the model's value."""
        return Toleration(key=self.key, operator=str(self.operator), value=self.value, effect=str(self.effect))

    def faults(self) -> Iterator[tuple[str, str, str]]:
        """Yield what Kubernetes refuses of it: the field, the fault, and a remedy."""
        return toleration_faults(
            key=self.key,
            operator=str(self.operator),
            value=self.value,
            effect=str(self.effect),
            seconds=self.toleration_seconds,
        )


class CheckedTolerationFile(TolerationFile):
    """A toleration that Kubernetes takes."""

    @model_validator(mode="after")
    def _refuse_faults(self) -> CheckedTolerationFile:
        """Refuse what Kubernetes refuses."""
        for field, message, hint in self.faults():
            raise refusal(f"{field}: {message}", hint)
        return self
