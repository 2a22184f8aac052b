"""kube-scheduler's filters on a few small nodes, written from Kubernetes' documentation and knowing nothing of ours.

A node is a mapping of `name`, `labels`, `gpus`, `taints`, `cordoned`, and `pods` that are there already; a pod one of
`namespace`, `labels`, `leaving` where it is being deleted, and `spec`, which is the raw one as it was written: the
keys of `matchLabelKeys` and `mismatchLabelKeys` are not part of its selectors yet.
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
    return _in_namespaces(term, other["namespace"], pod["namespace"]) and _selects(term, other["labels"], pod)


def _in_namespaces(term: Raw, namespace: str, own: str) -> bool:
    names, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if not names and selector is None:
        return namespace == own
    by_label = selector is not None and _meets(selector, {"kubernetes.io/metadata.name": namespace})
    return namespace in names or by_label


def _selects(term: Raw, labels: Raw, pod: Raw) -> bool:
    if term.get("labelSelector") is None:
        return False
    own = pod["labels"]
    same = all(labels.get(key) == own[key] for key in term.get("matchLabelKeys", []) if key in own)
    differs = all(labels.get(key) != own[key] for key in term.get("mismatchLabelKeys", []) if key in own)
    return same and differs and _meets(term["labelSelector"], labels)


def _meets(selector: Raw, labels: Raw) -> bool:
    def holds(one: Raw) -> bool:
        present, listed = one["key"] in labels, labels.get(one["key"]) in one.get("values", [])
        return {"In": listed, "NotIn": not listed, "Exists": present, "DoesNotExist": not present}[one["operator"]]

    wanted = selector.get("matchLabels", {}).items()
    return wanted <= labels.items() and all(map(holds, selector.get("matchExpressions", [])))


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
    if not found and all(_matches(term, pod, pod) for term in terms):  # the first of its kind may go anywhere
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
            found[other["labels"][key]] += sum(
                _counts(term, pod) and _matches(term, one, pod) and not one.get("leaving") for one in pods
            )
        least = 0 if len(found) < term.get("minDomains", 1) else min(found.values(), default=0)
        if found[node["labels"][key]] + _selects(term, pod["labels"], pod) - least > term["maxSkew"]:
            return False
    return True


def _counts(term: Raw, pod: Raw) -> bool:
    """Return whether a spread counts any pods: the scheduler passes over a selector that asks for nothing."""
    return bool(term["labelSelector"]) or any(key in pod["labels"] for key in term.get("matchLabelKeys", []))
