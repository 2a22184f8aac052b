"""What docs/background/fit.md says is not guessed is refused in these words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import pods_of_request
from reconciler.core.pods.pod_shape import replica_shape
from tests.builders.inputs import free
from tests.builders.pod_rules import HOST, LABELS, ZONE, apart, evenly, node, other, pod, seen, term, why_not
from tests.builders.requests import deployment, manifests, request
from tests.fakes.kube_scheduler import REQUIRED, Raw

PAGE = (Path(__file__).parents[2] / "docs" / "background" / "fit.md").read_text()
WORDS = re.findall(r"^\| .* \| `([^`]+)` \|$", PAGE.split("## What is not guessed")[1], re.MULTILINE)
REFUSED: list[tuple[Raw, list[Raw]]] = [
    (pod(nodeName="gpu-1"), []),
    (pod(affinity={"podAffinity": {REQUIRED: [term(ZONE, namespaces=["{{ x }}"])]}}), []),
    (pod(affinity={"podAffinity": {REQUIRED: [{"topologyKey": ZONE}]}}), []),
    (pod(topologySpreadConstraints=[evenly(ZONE, matchLabelKeys=["pod-template-hash"])]), [other(LABELS)]),
]


@pytest.mark.parametrize(("wanted", "there"), REFUSED)
def test_what_is_refused_is_on_the_page_in_its_words(wanted: Raw, there: list[Raw]) -> None:
    said = why_not([node("a", 8, zone="a", pods=there)], wanted)
    assert [words for words in WORDS if words in said] != [], said


def test_each_of_its_words_is_said_of_something() -> None:
    said = [why_not([node("a", 8, zone="a", pods=there)], wanted) for wanted, there in REFUSED]
    said += [of_files(), of_pods_on_their_way(), of_several_manifests()]
    said += [replica_shape(pod(**apart(HOST))["spec"]).obstacle]
    assert {words: [words in one for one in said].count(True) for words in WORDS} == dict.fromkeys(WORDS, 1)
    assert len(WORDS) == len(said)


def of_files() -> str:
    """Say why pods with rules find no room where an observation lists no pods."""
    wanted = pod(**apart(HOST))
    return ClusterCapacity(free("worker-2", 8)).shortfall(
        replica_shape(wanted["spec"], {"labels": LABELS, "namespace": "llm"})
    )


def of_pods_on_their_way() -> str:
    """Say why pods with rules find no room while some of them have no node yet."""
    wanted = replica_shape(pod(**apart(HOST))["spec"], {"labels": LABELS, "namespace": "llm"})
    room = ClusterCapacity(seen([node("a", 8), node("b", 8)]))
    room.take(wanted, 1)
    return room.shortfall(wanted)


def of_several_manifests() -> str:
    """Say why pods find no room whose rules are about those of another manifest, too."""
    first, second = deployment(), deployment()
    first["spec"]["template"]["spec"] |= apart(HOST)
    for made in (first, second):
        made["spec"]["template"]["metadata"] = {"labels": LABELS}
    second["metadata"] = {**second["metadata"], "name": "second"}
    return next(part.shape.obstacle for part in pods_of_request(request(spec=manifests(first, second))).parts)
