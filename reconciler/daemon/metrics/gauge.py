"""Gauges as lines of text, in the form that OpenMetrics and Prometheus' older text share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.text.targets import TextTarget, escaper

Labels: TypeAlias = tuple[str, ...]

_escape = escaper(TextTarget.METRIC_LABEL)
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A gauge of the fleet."""

    name: str
    """Without the prefix of all metrics."""
    help: str
    labels: Labels = ()

    @property
    def head(self) -> str:
        """The lines before the samples."""
        return f"# HELP overspill_{self.name} {self.help}\n# TYPE overspill_{self.name} gauge\n"

    def line(self, values: Iterable[str], value: float) -> str:
        """Return one sample, by the values of the labels in their order."""
        pairs = zip(self.labels, values, strict=True)
        labels = ",".join([f'{label}="{_escape(text).translate(_ESCAPES)}"' for label, text in pairs])
        number = repr(float(value))
        return f"overspill_{self.name}{{{labels}}} {number}\n" if labels else f"overspill_{self.name} {number}\n"
