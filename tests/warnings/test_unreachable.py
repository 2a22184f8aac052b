"""`check` tells of a policy that asks for labels, regions or clusters which those that it may use do not have."""

from __future__ import annotations

import pytest

from tests.builders.fleet_files import FLEET, cluster, errors, load, policy, warnings, workspace

AT = "policies/gpu.yaml:5: spec"


def policy_warnings(spec: str, *, region: str = "eu-1", home: str = "", more: str = "") -> list[str]:
    """Return the warnings about a policy with this spec, where worker-2 and worker-3 have a region each.

    With `more`, worker-4 has that for a tier and another region.
    """
    tiers = {
        "worker-2": (region, "gold"),
        "worker-3": ("eu-2", "gold"),
        **({"worker-4": ("eu-3", more)} if more else {}),
    }
    there = {
        f"clusters/{name}.yaml": cluster(name).replace(
            "  name:", f"  labels: {{region: {where}, tier: {tier}}}\n  name:"
        )
        for name, (where, tier) in tiers.items()
    }
    home = home or workspace().replace("[worker-1, worker-2]", f"[worker-1, {', '.join(tiers)}]")
    desired = load({**FLEET, **there, "workspaces/llm.yaml": home, "policies/gpu.yaml": policy("gpu", spec)})
    assert errors(desired) == []
    return warnings(desired)


def spreading(label: str, bounds: str = "maxGroups: 1") -> str:
    return f"{{distribution: {{spreadConstraint: {{spreadByLabel: {label}, {bounds}}}}}}}"


def test_a_spread_over_a_label_that_no_cluster_has_is_told():
    where = f"{AT}.distribution.spreadConstraint.spreadByLabel: no cluster that it may use in workspace llm has label"
    assert policy_warnings(spreading("regoin")) == [f"{where} regoin: nothing goes out (try 'region')"]
    assert policy_warnings(spreading("zone")) == [f"{where} zone: nothing goes out (there are region, tier)"]
    assert policy_warnings(spreading("region")) == []


def test_more_values_than_the_clusters_have_are_told():
    minimum = spreading("region", "minGroups: 3")
    (line,) = policy_warnings(minimum)
    assert line.startswith(
        f"{AT}.distribution.spreadConstraint.minGroups: 3 are asked for, and what it may use in workspace llm has "
        "2 values of region: eu-1 and eu-2 (try minGroups: 2; "
    )
    assert "has 1 value of region: eu-2 (" in policy_warnings(minimum, region="eu-2")[0]
    assert policy_warnings(spreading("region", "minGroups: 2")) == []


def test_lower_bound_that_the_upper_bound_of_another_label_leaves_out_of_reach_is_told():
    def both(tiers: int) -> str:
        bounds = "{spreadByLabel: region, minGroups: 3}", f"{{spreadByLabel: tier, maxGroups: {tiers}}}"
        return f"{{distribution: {{spreadConstraints: [{', '.join(bounds)}]}}}}"

    assert policy_warnings(both(1), more="spot") == [
        (
            f"{AT}.distribution.spreadConstraints[0].minGroups: 3 are asked for, and 1 value of tier in workspace llm "
            "have 2 at most (try spreadConstraints[1].maxGroups: 2, or minGroups: 2)"
        )
    ]
    assert policy_warnings(both(2), more="spot") == []
    assert policy_warnings(both(1), more="gold") == []


def test_more_clusters_than_there_are_to_use_are_told():
    (line,) = policy_warnings("{distribution: {minClusters: 3}}")
    assert line.startswith(
        f"{AT}.distribution.minClusters: 3 are asked for, and it may use 2 clusters in workspace llm"
    )
    assert (
        "minClusters: 2 are asked for"
        in policy_warnings("{clusters: [{name: worker-3}], distribution: {minClusters: 2}}")[0]
    )
    assert policy_warnings("{distribution: {minClusters: 2}}") == []


@pytest.mark.parametrize(("label", "way"), [("tier: golden", "(try 'tier=gold')"), ("spot: 'yes'", "(there are reg")])
def test_a_label_that_no_cluster_has_as_the_policy_requires_it_is_told(label: str, way: str):
    (line,) = policy_warnings(f"{{requireLabels: {{{label}}}}}")
    assert line.startswith(f"{AT}.requireLabels.{label.partition(':')[0]}: no cluster that it may use")
    assert way in line
    assert policy_warnings("{requireLabels: {tier: gold}}") == []


def test_labels_that_only_several_clusters_have_together_are_told():
    (line,) = policy_warnings(
        "{clusters: [{name: worker-3}, {name: worker-4}], requireLabels: {region: eu-2, tier: iron}}", more="iron"
    )
    assert line.startswith(f"{AT}.requireLabels: no cluster that it may use in workspace llm has all of them together")


def test_what_is_wrong_beside_a_label_that_is_required_is_told_at_once():
    both = f"{{requireLabels: {{tier: golden}}, {spreading('zone').removeprefix('{')}"
    assert len(policy_warnings(both)) == 2
    two = "{requireLabels: {tier: gold, region: eu-2}, distribution: {minClusters: 2}}"
    assert "it may use 1 cluster in workspace llm: worker-3 (" in policy_warnings(two)[0]


def test_the_primary_and_the_clusters_of_other_tenants_do_not_help():
    home = workspace().replace("worker-1\n", "worker-3\n", 1).replace("[worker-1, ", "[worker-3, ")
    assert (
        "it may use 1 cluster in workspace llm: worker-2 ("
        in policy_warnings("{distribution: {minClusters: 2}}", home=home)[0]
    )


def test_of_several_workspaces_the_one_that_comes_off_worst_is_named():
    few = workspace("chat").replace("[worker-1, worker-2]", "[worker-1]")
    some = workspace("team")
    desired = load(
        {
            **FLEET,
            "workspaces/chat.yaml": few,
            "workspaces/team.yaml": some,
            "policies/p.yaml": policy(
                "p", "{templates: [x], workspaces: [chat, team], distribution: {minClusters: 2}}"
            ),
        }
    )
    (line,) = [one for one in warnings(desired) if "minClusters" in one]
    assert "workspace team: worker-2 (" in line


def test_a_cluster_whose_file_is_broken_may_have_the_label():
    home = workspace().replace("[worker-1, worker-2]", "[worker-1, worker-2, worker-3]")
    files = {
        **FLEET,
        "clusters/worker-3.yaml": cluster("worker-3"),
        "workspaces/llm.yaml": home,
        "policies/gpu.yaml": policy("gpu", spreading("zone")),
    }
    assert len(warnings(load(files))) == 1
    assert warnings(load({**files, "clusters/worker-2.yaml": cluster("worker-2", "3")})) == []


def test_clusters_that_are_all_cordoned_are_told():
    def told(*cordoned: str) -> list[str]:
        files = {f"clusters/{name}.yaml": cluster(name, spec="{availability: Cordoned}") for name in cordoned}
        home = workspace().replace("[worker-1, worker-2]", "[worker-1, worker-2, worker-3]")
        others = {"clusters/worker-3.yaml": cluster("worker-3"), "workspaces/llm.yaml": home}
        return warnings(load({**FLEET, **others, **files}))

    assert [line for line in told("worker-2") if "Cordoned" in line] == []
    (line,) = told("worker-2", "worker-3")
    assert "all clusters that it may use in workspace llm are Cordoned: worker-2, worker-3; nothing goes out" in line
