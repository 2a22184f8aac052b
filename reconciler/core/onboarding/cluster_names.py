"""Names of clusters, made from the names of contexts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from reconciler.model.ids import ClusterName

_LONGEST = 63
_TOOLS = (
    re.compile(r"arn:aws[a-z-]*:eks:[^:]+:[0-9]+:cluster/(?P<name>.+)"),  # aws eks update-kubeconfig
    re.compile(r"gke_[^_]+_[^_]+_(?P<name>.+)"),  # gcloud container clusters get-credentials
    re.compile(r"[^@]+@(?P<name>[^.@]+)\.[^.]+\.eksctl\.io"),  # eksctl
    re.compile(r"[^@]+@(?P<name>[^@]+)"),  # kubeadm
)
"""Contexts as tools name them; all but the cluster's own name says where it is or who logs in."""


def cluster_names(
    contexts: Iterable[str], named: Mapping[str, ClusterName] = MappingProxyType({})
) -> dict[str, ClusterName]:
    """Return a name for the cluster of each context, each another; `named` are those that a person gives.

    It is the context's own name where that may name a cluster, else the part of it that names the cluster, else all of
    it with other characters replaced. Names that several would get end in a number.
    """
    given = list(contexts)
    short = {context: _short(context) for context in given}
    taken: set[str] = set(named.values())
    names: dict[str, ClusterName] = dict(named)
    for context in given:
        if context in named:
            continue
        alone = sum(name == short[context] for name in short.values()) == 1
        name = short[context] if alone else _plain(context)
        unique, number = name, 2
        while unique in taken:
            suffix = f"-{number}"
            unique, number = f"{name[: _LONGEST - len(suffix)].rstrip('-')}{suffix}", number + 1
        taken.add(unique)
        names[context] = ClusterName(unique)
    return names


def _short(context: str) -> str:
    """Return the part of a context's name that names the cluster."""
    match = next(filter(None, (tool.fullmatch(context) for tool in _TOOLS)), None)
    return _plain(match["name"] if match else context)


def _plain(text: str) -> str:
    """Make a DNS label of a text."""
    label = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST].rstrip("-")
    return label or "cluster"
