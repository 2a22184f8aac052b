"""kube-scheduler's filters on a few small nodes, written from Kubernetes' documentation and knowing nothing of ours.

A node is a mapping of `name`, `labels`, `gpus`, `taints`, `cordoned`, and `pods` that are there already; a pod one of
`namespace`, `labels` and `spec`, which is the raw one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

Raw = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GPU = "nvidia.com/gpu"


def worst(nodes: list[Raw], pod: Raw) -> int:
    """Return how many such pods, one after another, get a node if the scheduler chooses as badly as it may."""

    @cache
    def end(placed: tuple[int, ...]) -> int:
        follow = [
            (*placed[:index], placed[index] + 1, *placed[index + 1 :])
            for index in range(len(nodes))
            if _passes(index, nodes, placed, pod)
        ]
        return min(map(end, follow)) if follow else sum(placed)

    return end((0,) * len(nodes))


def _passes(index: int, nodes: list[Raw], placed: tuple[int, ...], pod: Raw) -> bool:
    node = nodes[index]
    there = [[*other["pods"], *([pod] * count)] for other, count in zip(nodes, placed, strict=True)]
    return (
        _wants(pod["spec"], node)
        and all(_tolerated(taint, pod["spec"]) for taint in _taints(node))
        and (placed[index] + 1) * _gpus(pod["spec"]) <= node["gpus"]
        and not set(_ports(pod["spec"])) & {port for other in there[index] for port in _ports(other["spec"])}
        and _apart(node, nodes, there, pod)
        and not _kept_out(node, nodes, there, pod)
        and _together(node, nodes, there, pod)
        and _evenly(node, nodes, there, pod)
    )


def _taints(node: Raw) -> list[Raw]:
    cordon = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}] if node["cordoned"] else []
    return [*node["taints"], *cordon]


def _tolerated(taint: Raw, spec: Raw) -> bool:
    return any(one.get("key", taint["key"]) == taint["key"] for one in spec.get("tolerations", []))


def _wants(spec: Raw, node: Raw) -> bool:
    return spec.get("nodeSelector", {}).items() <= node["labels"].items()


def _gpus(spec: Raw) -> int:
    return int(spec["containers"][0]["resources"]["requests"][GPU])


def _ports(spec: Raw) -> Iterator[tuple[int, str]]:
    for container in spec.get("containers", []):
        for port in container.get("ports", []):
            number = port.get("hostPort") or (port["containerPort"] if spec.get("hostNetwork") else 0)
            if number:
                yield number, port.get("protocol", "TCP")


def _matches(term: Raw, other: Raw, pod: Raw) -> bool:
    wanted = dict(term["labelSelector"]["matchLabels"])
    wanted |= {key: pod["labels"][key] for key in term.get("matchLabelKeys", []) if key in pod["labels"]}
    spaces = term.get("namespaces") or [pod["namespace"]]
    anywhere = term.get("namespaceSelector") == {}
    return (anywhere or other["namespace"] in spaces) and wanted.items() <= other["labels"].items()


def _apart(node: Raw, nodes: list[Raw], there: list[list[Raw]], pod: Raw) -> bool:
    for term in pod["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(REQUIRED, []):
        key = term["topologyKey"]
        if key not in node["labels"]:
            continue
        for other, pods in zip(nodes, there, strict=True):
            if other["labels"].get(key) == node["labels"][key] and any(_matches(term, one, pod) for one in pods):
                return False
    return True


def _kept_out(node: Raw, nodes: list[Raw], there: list[list[Raw]], pod: Raw) -> bool:
    """Tell whether a pod that is there has required anti-affinity to this one, in a domain that the node is in."""
    for other, pods in zip(nodes, there, strict=True):
        for one in pods:
            for term in one["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(REQUIRED, []):
                key = term["topologyKey"]
                shared = key in node["labels"] and other["labels"].get(key) == node["labels"][key]
                if shared and _matches(term, pod, one):
                    return True
    return False


def _together(node: Raw, nodes: list[Raw], there: list[list[Raw]], pod: Raw) -> bool:
    terms = pod["spec"].get("affinity", {}).get("podAffinity", {}).get(REQUIRED, [])
    if not all(term["topologyKey"] in node["labels"] for term in terms):
        return False
    found: Counter[tuple[str, str]] = Counter()
    for other, pods in zip(nodes, there, strict=True):
        met = sum(all(_matches(term, one, pod) for term in terms) for one in pods)
        for term in terms:
            if met and term["topologyKey"] in other["labels"]:
                found[term["topologyKey"], other["labels"][term["topologyKey"]]] += met
    if not found:  # the first of its kind may go anywhere
        return True
    return all(found[term["topologyKey"], node["labels"][term["topologyKey"]]] for term in terms)


def _evenly(node: Raw, nodes: list[Raw], there: list[list[Raw]], pod: Raw) -> bool:
    terms = [
        one for one in pod["spec"].get("topologySpreadConstraints", []) if one["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    if not all(term["topologyKey"] in node["labels"] for term in terms):
        return False
    for term in terms:
        key, found = term["topologyKey"], Counter[str]()
        for other, pods in zip(nodes, there, strict=True):
            if not all(one["topologyKey"] in other["labels"] for one in terms):
                continue
            if term.get("nodeAffinityPolicy", "Honor") == "Honor" and not _wants(pod["spec"], other):
                continue
            if term.get("nodeTaintsPolicy") == "Honor" and not all(_tolerated(t, pod["spec"]) for t in _taints(other)):
                continue
            found[other["labels"][key]] += sum(_matches(term, one, pod) for one in pods)
        least = 0 if len(found) < term.get("minDomains", 1) else min(found.values(), default=0)
        if found[node["labels"][key]] + 1 - least > term["maxSkew"]:
            return False
    return True
