"""A wrong field is told at its line, in words that say what would be right."""

from __future__ import annotations

import pytest

from reconciler.core.fleet.read_file import parse_file
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, errors, load, policy, text, warnings, workspace


def wrong_policy(spec: str) -> list[str]:
    """Load a policy with this spec, whose first line is line 6 of the file."""
    body = "".join(f"  {line}\n" for line in text(spec).splitlines())
    head = "apiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\nmetadata:\n  name: gpu\nspec:\n"
    return [
        line.removeprefix("policies/gpu.yaml:") for line in errors(load({**FLEET, "policies/gpu.yaml": head + body}))
    ]


def wrong_workspace(more: str) -> list[str]:
    """Load a workspace with these further fields, the first on line 9 of the file."""
    found = errors(load({**FLEET, "workspaces/llm.yaml": workspace(more=more)}))
    return [line.removeprefix("workspaces/llm.yaml:") for line in found if line.startswith("workspaces/")]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("priority: '3'", "6: spec.priority: must be a whole number, not the text '3' (try 3 without quotes)"),
        ("priority: 1.5", "6: spec.priority: must be a whole number, not 1.5"),
        ("priority: true", "6: spec.priority: must be a whole number, not true"),
        ("maxReplicas: -1", "6: spec.maxReplicas: -1 is less than 0"),
        ("workspaces: llm", "6: spec.workspaces: must be a list, not the text 'llm' (try [llm])"),
        ("workspaces: [1]", "6: spec.workspaces[0]: must be text, not 1 (try '1' in quotes)"),
        ("requireLabels: {gpu: true}", "6: spec.requireLabels.gpu: must be text, not true (try 'true' in quotes)"),
        ("requireLabels: []", "6: spec.requireLabels: must be a mapping, not a list"),
        ("duration: 4h", "6: spec.duration: must be a mapping, not the text '4h' (known here: default, max, renew)"),
        (
            "clusters: {name: w}",
            "6: spec.clusters: must be a list, not a mapping (try a list of one: begin it with a dash)",
        ),
        ("budget: {}", "6: spec.budget: has neither perDay nor perMonth (try perDay: 100)"),
        ("budget: {perDay: -1}", "6: spec.budget.perDay: -1 is less than 0"),
        ("hold: 90", "6: spec.hold: 90 has no unit (try '90s')"),
        ("hold: 4 hours", "6: spec.hold: '4 hours' is not a duration (try '4h')"),
        ("hold: PT4H", "6: spec.hold: 'PT4H' is not a duration (try '4h')"),
        ("hold: [1h]", "6: spec.hold: must be a duration (try '10m' or '1h30m')"),
        ("inFlightTimeout: 0s", "6: spec.inFlightTimeout: '0s' is not longer than nothing"),
        ("duration:\n  default: 4h\n  max: 1h", "6: spec.duration: default 4h is longer than max 1h (try default: 1h)"),
        ("duration:\n  max: 20 years", "7: spec.duration.max: '20 years' is not a duration (try '10m' or '1h30m')"),
        ("scaleUp: {}", "6: spec.scaleUp.window: is required"),
        ("scaleup:\n  window: 1m", "6: spec.scaleup: unknown field (try 'scaleUp')"),
        ("cooldown: 5m", "6: spec.cooldown: unknown field (try 'coolDown')"),
        (
            "zzz: 1\npriority: 1",
            (
                "6: spec.zzz: unknown field (known here: approval, budget, clusters, coolDown, distribution, duration, "
                "headroom, headroomDuration, hold, inFlightTimeout, maxReplicas, moves, priority, requireLabels, "
                "rolloutTimeout, scaleDown, scaleUp, scoring, signals, templates, tolerations, topology, weight, "
                "workerLostTimeout, workspaces)"
            ),
        ),
        (
            "scoring:\n- name: Prize",
            (
                "7: spec.scoring[0].name: 'Prize' is not one of PolicyOrder, Price, TimeToReady, WaitTime, ScarceGPU, "
                "Packing, RecentFailures, CurrentCluster, Topology (try 'Price')"
            ),
        ),
        (
            "scoring:\n- name: Price\n- {name: Price, weight: 2}",
            "6: spec.scoring: has scorer Price twice (try one entry with a higher weight)",
        ),
        (
            "scoring:\n- name: Topology",
            "6: spec.scoring: has scorer Topology, and the policy has no topology (add spec.topology.key)",
        ),
        (
            "topology: {key: rack/1/2}",
            (
                "6: spec.topology.key: 'rack/1/2' cannot be the name of a label "
                "(try one like topology.kubernetes.io/rack)"
            ),
        ),
        (
            "topology: {key: rack, mode: Wanted}",
            "6: spec.topology.mode: 'Wanted' is not one of Required, Preferred (try 'Required')",
        ),
        ("topology: {mode: Preferred}", "6: spec.topology.key: is required"),
        ("clusters:\n- {}", "7: spec.clusters[0]: has neither name nor matchLabels (try name: worker-2)"),
        (
            "clusters:\n- {name: worker-2, minReplicas: 3, maxReplicas: 2}",
            "7: spec.clusters[0]: minReplicas 3 is more than maxReplicas 2 (try minReplicas: 2)",
        ),
        (
            "clusters:\n- {name: worker-2, minReplicas: 3}\n- {name: worker-3, minReplicas: 2}\nmaxReplicas: 4",
            "9: spec.maxReplicas: 4 is less than the minReplicas of its clusters, which come to 5 (try maxReplicas: 5)",
        ),
        (
            "clusters:\n- {name: worker-2, weight: 2}\ndistribution:\n  strategy: Balanced",
            (
                "8: spec.distribution: strategy Balanced does not go by the weight of clusters[0]"
                " (try distribution: {strategy: Weighted})"
            ),
        ),
        (
            "clusters:\n- {name: worker-2}\n- {name: worker-3, weight: 2}",
            (
                "5: spec.distribution: strategy Ordered does not go by the weight of clusters[1]"
                " (try distribution: {strategy: Weighted})"
            ),
        ),
        (
            "clusters:\n- {name: worker-2, weight: -1}",
            "7: spec.clusters[0].weight: -1 is less than 0",
        ),
        (
            "distribution:\n  strategy: Spread",
            (
                "7: spec.distribution.strategy: 'Spread' is not one of Ordered, Weighted, Balanced, Aggregated"
                " (try 'Ordered')"
            ),
        ),
        (
            "distribution:\n  strategy: Duplicated",
            (
                "7: spec.distribution.strategy: 'Duplicated' is no strategy: each missing replica is placed once"
                " (try Balanced, and headroom)"
            ),
        ),
        (
            "distribution:\n  tiers: true",
            "6: spec.distribution: tiers need a strategy that divides within them (try strategy: Balanced)",
        ),
        (
            "distribution:\n  minClusters: 3\n  maxClusters: 2",
            "6: spec.distribution: minClusters 3 is more than maxClusters 2 (try minClusters: 2)",
        ),
        (
            "distribution:\n  spreadConstraint:\n    spreadByLabel: region",
            "7: spec.distribution.spreadConstraint: has neither minGroups nor maxGroups (try maxGroups: 1)",
        ),
        (
            "distribution:\n  spreadConstraint:\n    spreadByLabel: region\n    minGroups: 3\n    maxGroups: 2",
            "7: spec.distribution.spreadConstraint: minGroups 3 is more than maxGroups 2 (try minGroups: 2)",
        ),
        (
            "distribution:\n  maxClusters: 1\n  spreadConstraint: {spreadByLabel: region, minGroups: 2}",
            "6: spec.distribution: minGroups 2 is more than maxClusters 1 (try minGroups: 1)",
        ),
        (
            (
                "distribution:\n  spreadConstraint: {spreadByLabel: region, maxGroups: 2}\n"
                "  spreadConstraints: [{spreadByLabel: zone, maxGroups: 3}]"
            ),
            (
                "6: spec.distribution: has both spreadConstraint and spreadConstraints"
                " (try moving it into spreadConstraints)"
            ),
        ),
        (
            "distribution:\n  spreadConstraints:\n  - {spreadByLabel: zone, maxGroups: 3}\n  - {spreadByLabel: region}",
            "9: spec.distribution.spreadConstraints[1]: has neither minGroups nor maxGroups (try maxGroups: 1)",
        ),
        (
            (
                "distribution:\n  spreadConstraints:\n  - {spreadByLabel: zone, maxGroups: 3}\n"
                "  - {spreadByLabel: zone, minGroups: 2}"
            ),
            ("6: spec.distribution: has two spreadConstraints by zone (try one with minGroups and maxGroups)"),
        ),
        (
            "clusters:\n- name: worker-1\n  matchLabels: {a: b}",
            "7: spec.clusters[0]: has both name and matchLabels (try two entries)",
        ),
        (
            "clusters:\n- name: worker-1\n  maxreplicas: 3",
            "8: spec.clusters[0].maxreplicas: unknown field (try 'maxReplicas')",
        ),
        (
            "tolerations:\n- key: a\n  effect: noschedule",
            (
                "8: spec.tolerations[0].effect: 'noschedule' is not one of NoSchedule, PreferNoSchedule, NoExecute "
                "(try 'NoSchedule')"
            ),
        ),
    ],
)
def test_a_wrong_field_is_told_with_its_line_and_the_way_out(spec, message):
    assert wrong_policy(spec) == [message]


def test_all_problems_of_a_file_are_told_at_once():
    assert wrong_policy("priority: x\nhold: soon\nclusters:\n- nmae: worker-1\nmaxReplicas: 1.5") == [
        "6: spec.priority: must be a whole number, not the text 'x'",
        "7: spec.hold: 'soon' is not a duration (try '10m' or '1h30m')",
        "9: spec.clusters[0].nmae: unknown field (try 'name')",
        "10: spec.maxReplicas: must be a whole number, not 1.5",
    ]


@pytest.mark.parametrize(
    "spec", ["coolDown: 0s", "scaleUp: {window: 0m}", "scaleDown: {window: 0s}", "hold: 0h", "priority: null"]
)
def test_windows_may_be_nothing_and_null_counts_as_absent(spec):
    assert wrong_policy(spec) == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("../../etc", "try 'etc'"),
        ("Worker_1", "try 'worker-1'"),
        ("a/b", "try 'a-b'"),
        ("-", ("try lower-case letters, digits and '-'")),
        (".git", "try 'git'"),
        ("x" * 64, f"try '{'x' * 63}'"),
        ("a.b", "try 'a-b'"),
    ],
)
def test_a_name_that_could_leave_its_directory_is_refused(name, hint):
    found = errors(load({**FLEET, "clusters/x.yaml": cluster(f"'{name}'")}))
    assert found == [
        (
            f"clusters/x.yaml:4: metadata.name: '{name}' is not a name of lower-case letters, digits "
            f"and '-' (63 at most)"
            f" ({hint})"
        )
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "allowedKinds: [v1/Namespace]",
            (
                "9: spec.allowedKinds[0]: 'v1/Namespace' is not a group and a kind ('/Namespace' for the core group) "
                "(try '/Namespace')"
            ),
        ),
        (
            "allowedKinds: [ClusterRole]",
            (
                "9: spec.allowedKinds[0]: 'ClusterRole' is not a group and a kind ('/Namespace' for the core group) "
                "(try '/ClusterRole')"
            ),
        ),
        (
            "commandJobs: {image: kubectl:latest}",
            "9: spec.commandJobs.image: 'kubectl:latest' is not pinned by digest (try 'registry/name@sha256:…')",
        ),
        (
            "allowUnpinnedCharts: yes",
            "9: spec.allowUnpinnedCharts: must be true or false, not the text 'yes' (try true)",
        ),
    ],
)
def test_a_workspace_says_exactly_what_it_allows(more, message):
    assert wrong_workspace(more) == [message]


def test_a_price_is_a_number_of_dollars():
    found = load({**FLEET, "clusters/worker-2.yaml": cluster("worker-2", "{pricePerGPUHour: 2}")})
    assert found.clusters["worker-2"].price_per_gpu_hour == 2
    wrong = errors(load({**FLEET, "clusters/worker-2.yaml": cluster("worker-2", "{pricePerGPUHour: -1}")}))
    assert wrong[0] == "clusters/worker-2.yaml:5: spec.pricePerGPUHour: -1 is less than 0"
    quoted = errors(load({**FLEET, "clusters/worker-2.yaml": cluster("worker-2", "{pricePerGPUHour: '1.49'}")}))
    assert quoted[0] == (
        "clusters/worker-2.yaml:5: spec.pricePerGPUHour: must be a number, not the text '1.49'"
        " (try 1.49 without quotes)"
    )


FLEET_FILE = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec:\n  repoURL: "
PASSWORD = "hunter" + "2x"


@pytest.mark.parametrize(
    "address",
    [
        f"https://bot:{PASSWORD}@git.example.com/fleet.git",
        f"https://{PASSWORD}@git.example.com/fleet.git",
        f"ssh://git:{PASSWORD}@git.example.com/fleet.git",
        f"ssh://git:{PASSWORD}/9@git.example.com/fleet.git",
    ],
)
def test_a_password_in_the_address_of_the_fleet_is_an_error_that_does_not_print_it(address):
    assert errors(load({**FLEET, "fleet.yaml": FLEET_FILE + address})) == [
        (
            "fleet.yaml:5: spec.repoURL: may not hold a password or a token "
            "(leave it out; the engine has credentials of its own for a repository)"
        )
    ]


@pytest.mark.parametrize(
    "address",
    [
        "https://git.example.com:8443/a@b/fleet.git",
        "ssh://git@git.example.com:22/a@b.git",
        "git@git.example.com:acme/fleet.git",
    ],
)
def test_an_address_of_the_fleet_without_a_password_passes(address):
    desired = load({**FLEET, "fleet.yaml": FLEET_FILE + address})
    assert desired.problems == ()
    assert desired.fleet.repo_url == address


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "apiVersion: overspill.dev/v1alpha1\nkind: Burstpolicy\n",
            "2: kind: unknown kind Burstpolicy (try 'BurstPolicy')",
        ),
        (
            "apiVersion: gpr.kubeslice.io/v1alpha1\nkind: WorkloadTemplat\n",
            "2: kind: unknown kind WorkloadTemplat (try 'WorkloadTemplate')",
        ),
        (
            "apiVersion: apps.kruise.io/v1alpha1\nkind: WorkloadSpreads\n",
            "2: kind: unknown kind WorkloadSpreads (try 'WorkloadSpread')",
        ),
        (
            "apiVersion: overspill.dev/v1\nkind: Cluster\n",
            "1: apiVersion: Cluster has no version v1 (try 'overspill.dev/v1alpha1')",
        ),
        (
            "apiVersion: worker.kubeslice.io/v1alpha1\nkind: WorkloadTemplate\n",
            "1: apiVersion: WorkloadTemplate is not in worker.kubeslice.io (try 'gpr.kubeslice.io/v1alpha1')",
        ),
        (
            "apiVersion: overspil.dev/v1alpha1\nkind: BurstPolicy\n",
            "1: apiVersion: unknown group overspil.dev (try 'overspill.dev/v1alpha1')",
        ),
        ("kind: WorkloadTemplate\n", "1: apiVersion: is required (try 'gpr.kubeslice.io/v1alpha1')"),
    ],
)
def test_an_unknown_kind_of_our_groups_is_an_error_with_the_nearest_name(head, message):
    assert errors(load({**FLEET, "x.yaml": head + "metadata:\n  name: x\n"})) == [f"x.yaml:{message}"]


def test_a_kind_that_is_missing_is_asked_for():
    (found,) = errors(load({**FLEET, "x.yaml": "apiVersion: overspill.dev/v1alpha1\nmetadata: {}\n"}))
    assert found.startswith("x.yaml:1: kind: is required (one of BurstPolicy, Cluster, Fleet,")


@pytest.mark.parametrize(
    "content",
    [
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: overspill.dev}\n",
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: X_Y}\n",
        "apiVersion: controller.kubeslice.io/v1alpha1\nkind: Cluster\nmetadata: {name: x}\n",
        "apiVersion: controller.kubeslice.io/v1alpha1\nkind: SliceConfig\n",
        "apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\n",
        "# overspill.dev is mentioned here\njobs: &a {x: *a}\n: :\n\t- broken in its own way",
        "{{ if .Values.overspill }}\nkind: ConfigMap # for WorkloadTemplate\n{{ end }}\n",
        "- overspill.dev\n- kind\n",
        "just text about kubeslice.io\n",
        b"\xff\xfebinary",
    ],
)
def test_files_and_objects_of_others_are_ignored(content):
    assert load({**FLEET, "clusters/x.yaml": content}).problems == ()


def test_kubectl_lists_are_read_item_by_item():
    items = "".join(
        f"- apiVersion: overspill.dev/v1alpha1\n  kind: Cluster\n  metadata:\n    name: {name}\n" for name in ("a", "B")
    )
    desired = load({**FLEET, "clusters/x.yaml": f"apiVersion: v1\nkind: List\nitems:\n{items}"})
    assert [line.partition(":")[2] for line in errors(desired)] == [
        "11: items[1].metadata.name: 'B' is not a name of lower-case letters, digits and '-' (63 at most) (try 'b')"
    ]
    desired = load({**FLEET, "clusters/x.yaml": f"apiVersion: v1\nkind: List\nitems:\n{items.replace('B', 'b')}"})
    assert {"a", "b"} <= set(desired.clusters)


def test_several_documents_of_one_file_are_read_and_told_by_line():
    desired = load({**FLEET, "clusters/x.yaml": cluster("worker-3") + "---\n" + cluster("worker-4", "{taint: []}")})
    assert errors(desired) == ["clusters/x.yaml:10: spec.taint: unknown field (try 'taints')"]


def test_lookalikes_are_warned_about_in_our_files_only():
    assert load({**FLEET, "x.yaml": "apiVersion: v1\nkind: ConfigMap\ndata: {overspill.dev: yes}\n"}).problems == ()
    warned = warnings(
        load(
            {
                **FLEET,
                "templates/vllm.yaml": TEMPLATE.replace('"{{ replicas }}"', '"{{ replicas }}"\n        paused: no'),
            }
        )
    )
    assert warned == [
        "templates/vllm.yaml:19: no is read as text; other tools read it as false (try false, or 'no' in quotes)"
    ]


def test_policies_need_no_spec_and_fleets_are_optional():
    desired = load({**FLEET, "policies/gpu.yaml": policy().replace("spec: {}\n", "")})
    assert desired.problems == ()
    assert desired.fleet.engine == "argocd"


@pytest.mark.parametrize("key", ["<x", "<text>", "<object>", "[key]", "[key", "<", "\\n"])
def test_a_key_that_looks_like_a_tag_of_the_library_is_told_as_the_files_own(key: str) -> None:
    for kind in ("Cluster", "Workspace", "BurstPolicy", "Fleet"):
        file = f'apiVersion: overspill.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: x}}\nspec: {{}}\n"{key}": 1\n'
        problems = [problem for problem in parse_file(file.encode()).problems if problem.line == 5]
        assert [problem.message for problem in problems] == ["unknown field"]
        assert problems[0].bug is None
