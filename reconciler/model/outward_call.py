"""Calls to systems outside this process, as metrics and traces name them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NO_ANSWER = "none"
"""The code of a call that got no answer."""


class Peer(StrEnum):
    """A kind of system outside."""

    GIT = "git"
    KUBERNETES = "kubernetes"
    PROMETHEUS = "prometheus"
    SLURM = "slurm"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutwardCall:
    """One call."""

    peer: Peer
    verb: str
    """What is done there, of a bounded number of words: a verb of Kubernetes, or a command of git."""
    target: str = ""
    """The cluster, or the title of a control plane; empty where the kind has one system alone."""
