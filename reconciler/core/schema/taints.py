"""Taints and tolerations, as Kubernetes writes them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from reconciler.core.schema.strict_model import Strict, Text
from reconciler.model.scheduling import Taint, Toleration


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

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

    key: Text
    value: str = ""
    effect: EffectField = TaintEffect.NO_SCHEDULE
    time_added: str = Field("", description="What kubectl exports; not read.")

    def value_of(self) -> Taint:
        """Make the model's value."""
        return Taint(key=self.key, value=self.value, effect=str(self.effect))


class TolerationFile(Strict):
    """A toleration as in a pod spec."""

    key: str = ""
    operator: Annotated[Operator, Field(strict=False)] = Operator.EQUAL
    value: str = ""
    effect: Annotated[AnyEffect, Field(strict=False)] = AnyEffect.ANY
    toleration_seconds: int | None = Field(None, description="What pods carry; read in a WorkloadSpread only.")

    def value_of(self) -> Toleration:
        """Make the model's value."""
        return Toleration(key=self.key, operator=str(self.operator), value=self.value, effect=str(self.effect))
