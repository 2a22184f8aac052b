"""No more pods with rules are promised room than find it, whichever nodes the scheduler takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.examples import examples
from tests.builders.pod_rules import (
    HOST,
    LABELS,
    RACK,
    ZONE,
    apart,
    counted,
    evenly,
    node,
    other,
    pod,
    term,
    together,
)
from tests.fakes.kube_scheduler import REQUIRED, Raw, worst

ports = st.sampled_from(
    [[], [], [{"containerPort": 8080, "hostPort": 8080}], [{"containerPort": 8080, "hostPort": 9090}]]
)
WEB = {"app": "web"}
strangers = st.builds(
    lambda leaving, **fields: {**other(**fields), "leaving": leaving},
    leaving=st.sampled_from([False] * 5 + [True]),
    labels=st.sampled_from([LABELS, LABELS, WEB, {**WEB, "role": "cache"}, {**LABELS, "role": "head"}]),
    namespace=st.sampled_from(["llm", "llm", "web"]),
    ports=ports,
    keeps=st.lists(
        st.builds(
            lambda key, more: term(key, **more),
            st.sampled_from([HOST, ZONE, RACK]),
            st.sampled_from(
                [
                    {},
                    {"namespaces": ["llm"]},
                    {"namespaceSelector": {}},
                    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "web"}}},
                    {"labelSelector": {"matchLabels": {"app": "web"}}},
                ]
            ),
        ),
        max_size=1,
    ),
)


@st.composite
def clusters(draw: st.DrawFn) -> list[Raw]:
    """A few nodes in zones and racks that cross them, some without labels, tainted, cordoned, or taken."""
    made = []
    for index in range(draw(st.integers(1, 5))):
        name, labels = f"n{index}", {}
        for key, values in (
            (HOST, [name] * 5 + [None]),
            (ZONE, ["a", "a", "b", "c", None]),
            (RACK, ["1", "2", "3", None]),
        ):
            if (value := draw(st.sampled_from(values))) is not None:
                labels[key] = value
        labels |= draw(st.sampled_from([{}, {}, {"model": "h100"}]))
        taints = draw(st.sampled_from([[], [], [], [{"key": "spot", "effect": "NoSchedule"}]]))
        there = draw(st.lists(strangers, max_size=draw(st.sampled_from([0, 0, 0, 2]))))
        one = {"name": name, "labels": labels, "gpus": draw(st.integers(0, 3)), "taints": taints, "pods": there}
        made.append({**one, "cordoned": draw(st.sampled_from([False] * 5 + [True]))})
    return made


keys = st.sampled_from([HOST, ZONE, ZONE, RACK])
selectors = st.sampled_from(
    [
        {"matchLabels": LABELS},
        {"matchLabels": LABELS},
        {"matchLabels": WEB},
        {"matchLabels": WEB},
        {"matchLabels": {"role": "head"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["vllm"]}]},
        {"matchExpressions": [{"key": "role", "operator": "Exists"}]},
        {},
        None,
    ]
)
named = {"labelSelector": selectors, "matchLabelKeys": st.sampled_from([["role"], ["app"]])}
fields = st.fixed_dictionaries(
    {},
    optional={
        "namespaces": st.sampled_from([["web"], ["llm", "web"]]),
        "namespaceSelector": st.sampled_from([{}, {"matchLabels": {"kubernetes.io/metadata.name": "web"}}]),
        "mismatchLabelKeys": st.sampled_from([["role"], ["app"]]),
        **named,
    },
)
terms = st.lists(st.builds(lambda key, more: term(key, **more), keys, fields), max_size=2)
spreads = st.builds(
    lambda key, skew, more: evenly(key, skew, **more),
    keys,
    st.integers(1, 3),
    st.fixed_dictionaries(
        {},
        optional={
            "minDomains": st.integers(1, 4),
            "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
            "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
            **named,
        },
    ),
)
pods = st.builds(
    lambda anti, affine, spread, fixed: pod(
        topologySpreadConstraints=spread,
        affinity={"podAntiAffinity": {REQUIRED: anti}, "podAffinity": {REQUIRED: affine}},
        **fixed,
    ),
    st.one_of(st.just([]), terms),
    st.one_of(st.just([]), terms),
    st.lists(spreads, max_size=2),
    st.fixed_dictionaries(
        {"ports": ports},
        optional={
            "nodeSelector": st.just({"model": "h100"}),
            "tolerations": st.sampled_from([[{"key": "spot", "operator": "Exists"}], [{"operator": "Exists"}]]),
            "hostNetwork": st.just(True),
        },
    ),
)


@examples(4)
@given(clusters(), pods)
def test_no_more_pods_are_promised_than_the_worst_choice_of_nodes_leaves_room_for(
    nodes: list[Raw], wanted: Raw
) -> None:
    assert counted(nodes, wanted) <= worst(nodes, wanted)


@st.composite
def labelled(draw: st.DrawFn) -> list[Raw]:
    """A few nodes that all have a zone."""
    size = draw(st.integers(1, 5))
    return [node(f"n{index}", draw(st.integers(0, 4)), zone=draw(st.sampled_from("abc"))) for index in range(size)]


simple = st.one_of(
    st.sampled_from([apart(HOST), apart(ZONE), apart(HOST, ZONE), together(ZONE), together(HOST), {}]),
    st.builds(
        lambda key, skew, least, also: {"topologySpreadConstraints": [evenly(key, skew, minDomains=least)], **also},
        st.sampled_from([HOST, ZONE]),
        st.integers(1, 3),
        st.integers(1, 4),
        st.sampled_from([{}, apart(HOST), {"ports": [{"containerPort": 80, "hostPort": 80}]}]),
    ),
)


@examples(2)
@given(labelled(), simple)
def test_with_one_spread_the_count_is_what_the_worst_choice_leaves(nodes: list[Raw], fields: Raw) -> None:
    assert counted(nodes, pod(**fields)) == worst(nodes, pod(**fields))


@st.composite
def inhabited(draw: st.DrawFn) -> list[Raw]:
    """A few nodes, some without a zone, with pods of others and of the pod's own kind."""
    made = draw(labelled())
    for one in made:
        one["pods"] = draw(st.lists(strangers, max_size=2))
        one["pods"] = [there if "leaving" not in there else {**there, "leaving": False} for there in one["pods"]]
        if draw(st.sampled_from([False] * 4 + [True])):
            del one["labels"][ZONE]
    return made


of_others = st.one_of(
    st.builds(
        lambda kind, more: {"affinity": {kind: {REQUIRED: [more]}}},
        st.sampled_from(["podAffinity", "podAntiAffinity"]),
        st.builds(lambda key, more: term(key, **more), st.sampled_from([HOST, ZONE]), fields),
    ),
    st.builds(
        lambda key, skew, more: {"topologySpreadConstraints": [evenly(key, skew, **more)]},
        st.sampled_from([HOST, ZONE]),
        st.integers(1, 2),
        st.fixed_dictionaries({}, optional={**named, "minDomains": st.integers(1, 3)}),
    ),
)


@examples(4)
@given(inhabited(), of_others)
def test_with_one_rule_about_any_pods_the_count_is_what_the_worst_choice_leaves(nodes: list[Raw], fields: Raw) -> None:
    assert counted(nodes, pod(**fields)) == worst(nodes, pod(**fields))
