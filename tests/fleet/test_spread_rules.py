"""WorkloadSpread files load as they are, in both versions, and each of OpenKruise's rules is told at its field."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.kubernetes.workload_spread import Bound, PreferredTerm
from tests.builders.fleet_files import FLEET, errors, load, warnings
from tests.builders.spread_files import (
    DEMO,
    DOMAINS,
    ELASTIC,
    HEAD,
    PATCHES,
    ROLLOUT,
    TFJOB,
    TOLERATION,
    VLLM,
    doubtful,
    fleet_for,
    governing,
    spread,
    subsets,
    wrong,
)

ZONE = "topology.kubernetes.io/zone"


def in_zone(zone: str) -> Requirements:
    return Requirements(labels=(Requirement(key=ZONE, operator="In", values=(zone,)),))


def test_the_sample_with_every_field_is_in_force():
    desired = load({**fleet_for("CloneSet", "apps.kruise.io/v1alpha1", "workload-xxx", "default"), "s.yaml": DEMO})
    assert desired.problems == ()
    found = governing(desired)
    assert (found.name, found.namespace, found.group) == ("workloadspread-demo", "default", "apps.kruise.io")
    assert (found.target.kind, found.target.namespace, found.target.name) == ("CloneSet", "default", "workload-xxx")
    first, second = found.subsets
    assert (first.name, first.most, first.required) == ("subset-a", Bound(number=3), in_zone("zone-a"))
    other = Requirement(key="another-node-label-key", operator="In", values=("another-node-label-value",))
    assert first.preferred == (PreferredTerm(weight=1, term=Requirements(labels=(other,))),)
    assert first.patch == {"metadata": {"labels": {"xxx-specific-label": "xxx"}}}
    assert (second.name, second.most, second.required) == ("subset-b", None, in_zone("zone-b"))
    assert (found.reschedule, found.recovery) == (timedelta(seconds=30), timedelta(seconds=300))
    assert (found.path, found.line) == ("s.yaml", 1)


def test_the_sample_of_an_elastic_zone_is_in_force():
    files = fleet_for("CloneSet", "apps.kruise.io/v1alpha1", "workload-xxx", "deploy")
    desired = load({**files, "s.yaml": ELASTIC})
    assert desired.problems == ()
    found = governing(desired)
    assert [(one.name, one.most) for one in found.subsets] == [("ACK", Bound(number=100)), ("ECI", None)]
    assert found.subsets[0].patch == {"metadata": {"labels": {"deploy/zone": "ack"}}}
    assert found.reschedule is None


def test_the_sample_of_two_zones_is_in_force():
    files = fleet_for("CloneSet", "apps.kruise.io/v1alpha1", "workload-xxx", "deploy")
    desired = load({**files, "s.yaml": DOMAINS})
    assert desired.problems == ()
    assert [one.most for one in governing(desired).subsets] == [Bound(number=100), Bound(number=100)]


def test_the_sample_of_one_role_of_a_job_loads_and_is_told_not_to_spread_what_runs_in_groups():
    files = fleet_for("TFJob", "kubeflow.org/v1", "tfjob-demo", "default")
    named = files["templates/vllm.yaml"].replace(
        "  name: vllm\n", "  name: vllm\n  annotations: {overspill.dev/workload: TFJob/default/tfjob-demo}\n", 1
    )
    files = {**files, "templates/vllm.yaml": named}
    assert doubtful(TFJOB, files) == [
        (
            "6: spec.targetRef: llm/vllm runs in groups and has one cluster, so that subsets only bound its clusters "
            "(order its clusters in spec.clusters of its BurstPolicy; limits and patches are without effect)"
        )
    ]
    assert load({**files, "s.yaml": TFJOB}).policies[VLLM].spread is None


def test_which_role_counts_and_where_its_replicas_are_is_read():
    role = "targetFilter: {selector: {matchLabels: {role: worker}}, replicasPathList: [spec.replicas]}"
    found = governing(load({**FLEET, "s.yaml": spread(f"subsets: [{{name: all}}]\n{role}")}))
    assert found.selector == {"role": "worker"}
    assert found.replicas_paths == ("spec.replicas",)


def test_the_sample_of_a_custom_workload_is_in_force():
    files = fleet_for("Rollout", "argoproj.io/v1alpha1", "rollouts-demo", "default")
    desired = load({**files, "s.yaml": ROLLOUT})
    assert desired.problems == ()
    assert governing(desired).target.kind == "Rollout"


@pytest.mark.parametrize("patch", PATCHES)
def test_a_patch_is_taken_as_it_is(patch: str):
    assert governing(load({**FLEET, "s.yaml": subsets(f"patch: {patch}")})).subsets[0].patch != {}


def test_tolerations_are_those_of_pods():
    lasting = "{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 30}"
    (one,) = governing(load({**FLEET, "s.yaml": subsets(f"tolerations: [{TOLERATION}, {lasting}]")})).subsets
    assert one.tolerations == (
        Toleration(key="key1", value="value1", effect="NoSchedule"),
        Toleration(key="k", operator="Exists", effect="NoExecute", seconds=30),
    )


def test_the_names_of_both_versions_are_read_in_both():
    term = "{matchExpressions: [{key: gpu, operator: Exists}]}"
    old = f"requiredNodeSelectorTerm: {term}, preferredNodeSelectorTerms: [{{weight: 5, preference: {term}}}]"
    new = f"requiredNodeSelector: {term}, preferredNodeSelector: [{{weight: 5, preference: {term}}}]"
    read = [
        governing(load({**FLEET, "s.yaml": subsets(fields).replace("v1alpha1", version)})).subsets
        for fields in (old, new, f"{old}, {new}")
        for version in ("v1alpha1", "v1beta1")
    ]
    assert read == read[:1] * 6
    assert read[0][0].required is not None
    assert read[0][0].preferred[0].weight == 5


def test_what_kruise_reports_is_not_read():
    status = "status: {observedGeneration: 1, subsetStatuses: [{name: all, replicas: 3, missingReplicas: -1}]}\n"
    assert doubtful(spread() + status) == []


def test_a_minimum_and_a_recovery_of_its_own_are_read():
    source = subsets("minReplicas: 2, maxReplicas: 4", "minReplicas: 0") + (
        "  scheduleStrategy:\n    type: Adaptive\n"
        "    adaptive: {rescheduleCriticalSeconds: 595, unschedulableDuration: 600}\n"
    )
    found = governing(load({**FLEET, "s.yaml": source}))
    assert [one.least for one in found.subsets] == [2, 0]
    assert (found.reschedule, found.recovery) == (timedelta(seconds=595), timedelta(seconds=600))


@pytest.mark.parametrize(("written", "bound"), [("50%", Bound(number=50, percent=True)), ("7", Bound(number=7))])
def test_a_limit_is_a_number_or_a_percentage(written: str, bound: Bound):
    first, _ = governing(load({**FLEET, "s.yaml": subsets(f"maxReplicas: {written}", "patch: {}")})).subsets
    assert first.most == bound


def test_expressions_select_pods_beside_labels():
    more = "targetFilter: {selector: {matchExpressions: [{key: role, operator: NotIn, values: [ps]}]}}"
    found = governing(load({**FLEET, "s.yaml": spread(f"{more}\nsubsets: [{{name: all}}]")}))
    assert found.selector_expressions == (Requirement(key="role", operator="NotIn", values=("ps",)),)


ADAPTIVE = "scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: %s}}"
TARGET = "targetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm}"
REFUSED = {
    "no subsets": ("subsets: []", "8: spec.subsets: subsets number must >= 1 in WorkloadSpread (try subsets: [{name:"),
    "no subsets at all": ("", "6: spec.subsets: subsets number must >= 1 in WorkloadSpread (try"),
    "no name": ("subsets: [{patch: {}}]", "8: spec.subsets[0].name: is empty (name it after what it selects)"),
    "one name twice": (
        "subsets: [{name: a}, {name: a}]",
        "8: spec.subsets[1].name: duplicated subset name a (try another name)",
    ),
    "a name of two lines": (
        'subsets: [{name: "a\\nb"}]',
        "8: spec.subsets[0].name: 'a\\\\nb' cannot be told in one line (at most 100 characters, and no line ends",
    ),
    "a value too many": (
        "subsets: [{name: a, requiredNodeSelectorTerm: {matchExpressions: [{key: k, operator: Exists, values: [x]}]}}]",
        "8: spec.subsets[0].requiredNodeSelectorTerm.matchExpressions[0].values: Exists takes no values (leave out",
    ),
    "no values, in v1beta1's spelling": (
        "subsets: [{name: a, requiredNodeSelector: {matchExpressions: [{key: k, operator: In}]}}]",
        "8: spec.subsets[0].requiredNodeSelector.matchExpressions[0].values: In needs values (try 'values: [a, b]')",
    ),
    "a label's name": (
        "subsets: [{name: a, requiredNodeSelectorTerm: {matchExpressions: [{key: a b, operator: Exists}]}}]",
        "8: spec.subsets[0].requiredNodeSelectorTerm.matchExpressions[0].key: 'a b' cannot be the name of a label (",
    ),
    "an operator": (
        "subsets: [{name: a, requiredNodeSelectorTerm: {matchExpressions: [{key: k, operator: Is}]}}]",
        "8: spec.subsets[0].requiredNodeSelectorTerm.matchExpressions[0].operator: 'Is' is not one of In, NotIn, Exis",
    ),
    "a weight": (
        "subsets: [{name: a, preferredNodeSelectorTerms: [{weight: 101, preference: {}}]}]",
        "8: spec.subsets[0].preferredNodeSelectorTerms[0].weight: 101 is not in the range 1-100 (try 100)",
    ),
    "no weight": (
        "subsets: [{name: a, preferredNodeSelector: [{weight: 0, preference: {}}]}]",
        "8: spec.subsets[0].preferredNodeSelector[0].weight: 0 is not in the range 1-100 (try 1)",
    ),
    "two spellings": (
        (
            "subsets: [{name: a, requiredNodeSelectorTerm: {matchExpressions: [{key: k, operator: Exists}]}, "
            "requiredNodeSelector: {}}]"
        ),
        "8: spec.subsets[0].requiredNodeSelector: is requiredNodeSelectorTerm under another name, and they differ (ke",
    ),
    "a toleration without a key": (
        "subsets: [{name: a, tolerations: [{value: x}]}]",
        "8: spec.subsets[0].tolerations[0].operator: an empty key needs the operator Exists (try Exists)",
    ),
    "a toleration of anything with a value": (
        "subsets: [{name: a, tolerations: [{key: k, operator: Exists, value: x}]}]",
        "8: spec.subsets[0].tolerations[0].value: Exists takes no value (leave it out, or try Equal)",
    ),
    "two names": (
        "subsets: [{name: a, requiredNodeSelector: {matchFields: [{key: metadata.name, operator: In,values: [a,b]}]}}]",
        ("8: spec.subsets[0].requiredNodeSelector.matchFields[0].values: lists 2, of at most 1 (leave 1 of them out)"),
    ),
    "a toleration for a while": (
        "subsets: [{name: a, tolerations: [{key: k, operator: Exists, tolerationSeconds: 3}]}]",
        "8: spec.subsets[0].tolerations[0].effect: tolerationSeconds needs the effect NoExecute (leave",
    ),
    "a toleration of no value": (
        "subsets: [{name: a, tolerations: [{key: k, value: a b}]}]",
        "8: spec.subsets[0].tolerations[0].value: 'a b' cannot be the value of a taint (try letters",
    ),
    "a patch": ("subsets: [{name: a, patch: x}]", "8: spec.subsets[0].patch: must be a mapping, not the text 'x'"),
    "a patch of another type": (
        "subsets: [{name: a, patch: {spec: {tolerations: foo}}}]",
        "8: spec.subsets[0].patch.spec.tolerations: Kubernetes takes a list here, not 'foo' (try a list of one)",
    ),
    "a patch with a list for a text": (
        "subsets: [{name: a, patch: {spec: {nodeSelector: {pool: [spot]}}}}]",
        "8: spec.subsets[0].patch.spec.nodeSelector.pool: Kubernetes takes a text here, not a list (try one name)",
    ),
    "a patch with a number for a label": (
        "subsets: [{name: a, patch: {metadata: {labels: {generation: 3}}}}]",
        "8: spec.subsets[0].patch.metadata.labels.generation: Kubernetes takes a text here, not '3' (quote it)",
    ),
    "number and percentage": (
        "subsets: [{name: a, maxReplicas: 3}, {name: b, maxReplicas: 30%}, {name: c}]",
        (
            "8: spec.subsets[1].maxReplicas: the maxReplicas type of all subsets must be the same "
            "(try a whole number here, too)"
        ),
    ),
    "a limit below nothing": (
        "subsets: [{name: a, maxReplicas: -1}]",
        "8: spec.subsets[0].maxReplicas: maxReplicas is not valid for subset (try 0, or leave it out for no limit)",
    ),
    "a limit that is no number of Kubernetes": (
        "subsets: [{name: a, maxReplicas: 2147483648}]",
        "8: spec.subsets[0].maxReplicas: maxReplicas is not valid for subset (leave it out for no limit)",
    ),
    "a number in quotes": (
        "subsets: [{name: a, maxReplicas: '50'}]",
        "8: spec.subsets[0].maxReplicas: maxReplicas is not valid for subset (try 50 or '50%')",
    ),
    "a word": (
        "subsets: [{name: a, maxReplicas: half}]",
        "8: spec.subsets[0].maxReplicas: maxReplicas is not valid for subset (try 3 or '30%')",
    ),
    "a limit that is neither": (
        "subsets: [{name: a, maxReplicas: 1.5}]",
        "8: spec.subsets[0].maxReplicas: must be a whole number or a percentage (try 3 or '30%')",
    ),
    "more than all": (
        "subsets: [{name: a, maxReplicas: 40%}, {name: b, maxReplicas: 70%}, {name: c}]",
        (
            "8: spec.subsets[1].maxReplicas: the sum of all subset's maxReplicas exceeds 100% is no permitted "
            "(try '60%', or none for the last subset)"
        ),
    ),
    "less than all": (
        "subsets: [{name: a, maxReplicas: 40%}, {name: b, maxReplicas: 50%}]",
        (
            "8: spec.subsets[0].maxReplicas: maxReplicas sum of all subsets must equal 100% when type is specified as "
            "percent (they come to 90%; leave the last one's out)"
        ),
    ),
    "a minimum below nothing": (
        "subsets: [{name: a, minReplicas: -1}]",
        "8: spec.subsets[0].minReplicas: -1 is less than 0 (try 0)",
    ),
    "a minimum above the maximum": (
        "subsets: [{name: a, minReplicas: 3, maxReplicas: 2}]",
        "8: spec.subsets[0].minReplicas: minReplicas 3 is more than maxReplicas 2 (try 2)",
    ),
    "a minimum where there is nothing": (
        "subsets: [{name: a, minReplicas: 1, maxReplicas: 0%}, {name: b}]",
        "8: spec.subsets[0].minReplicas: minReplicas 1 is more than maxReplicas 0% (try 0)",
    ),
    "a fraction of a percentage": (
        "subsets: [{name: a, maxReplicas: 5.5%}]",
        "8: spec.subsets[0].maxReplicas: maxReplicas is not valid for subset (try 6 or '6%')",
    ),
    "labels as a pod's nodeSelector has them": (
        "subsets: [{name: a, requiredNodeSelectorTerm: {matchLabels: {pool: spot}}}]",
        (
            "8: spec.subsets[0].requiredNodeSelectorTerm.matchLabels: unknown field "
            "(try matchExpressions: [{key: ..., operator: In, values: [...]}])"
        ),
    ),
    "several terms": (
        "subsets: [{name: a, requiredNodeSelectorTerm: {nodeSelectorTerms: []}}]",
        (
            "8: spec.subsets[0].requiredNodeSelectorTerm.nodeSelectorTerms: unknown field "
            "(a subset has one term: write its matchExpressions here)"
        ),
    ),
    "seconds with their unit": (
        "subsets: [{name: a}]\nscheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 30s}}",
        (
            "9: spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds: must be a whole number, not the text '30s' "
            "(try 30)"
        ),
    ),
    "a minimum as a percentage": (
        "subsets: [{name: a, minReplicas: 30%}]",
        "8: spec.subsets[0].minReplicas: must be a whole number, not the text '30%'",
    ),
    "a strategy": (
        "subsets: [{name: a}]\nscheduleStrategy: {type: Eager}",
        "9: spec.scheduleStrategy.type: ScheduleStrategy's type is not valid (try Fixed or Adaptive)",
    ),
    "a block for another strategy": (
        "subsets: [{name: a}]\nscheduleStrategy: {adaptive: {rescheduleCriticalSeconds: 30}}",
        (
            "9: spec.scheduleStrategy.type: the scheduleStrategy's type must be adaptive when using adaptive "
            "scheduleStrategy (try type: Adaptive, or leave adaptive out)"
        ),
    ),
    "a limited last subset": (
        f"subsets: [{{name: a}}, {{name: b, maxReplicas: 3}}]\n{ADAPTIVE % 30}",
        (
            "9: spec.scheduleStrategy.adaptive: the last subset's maxReplicas must be not specified when using "
            "adaptive scheduleStrategy (leave it out, or add a subset without)"
        ),
    ),
    "a recovery below nothing": (
        (
            "subsets: [{name: a}]\nscheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 3, "
            "unschedulableDuration: -1}}"
        ),
        "9: spec.scheduleStrategy.adaptive.unschedulableDuration: -1 is less than 0 (try 300)",
    ),
    "a recovery beyond all calendars": (
        (
            "subsets: [{name: a}]\nscheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 3, "
            "unschedulableDuration: 300000000000}}"
        ),
        (
            "9: spec.scheduleStrategy.adaptive.unschedulableDuration: 300000000000 seconds are longer than ten years"
            " (try 300)"
        ),
    ),
    "a selector": (
        "subsets: [{name: a}]\ntargetFilter: {selector: {matchExpressions: [{key: k, operator: Is}]}}",
        "9: spec.targetFilter: selector parse error: matchExpressions[0]: 'Is' is no operator (try In, NotIn, Exists",
    ),
    "a selector without values": (
        "subsets: [{name: a}]\ntargetFilter: {selector: {matchExpressions: [{key: k, operator: In}]}}",
        "9: spec.targetFilter: selector parse error: matchExpressions[0]: In needs values (try 'values: [a, b]')",
    ),
    "a selector with values": (
        "subsets: [{name: a}]\ntargetFilter: {selector: {matchExpressions: [{key: k, operator: Exists, values: [a]}]}}",
        "9: spec.targetFilter: selector parse error: matchExpressions[0]: Exists takes no values (leave out values",
    ),
    "a selector of no label": (
        "subsets: [{name: a}]\ntargetFilter: {selector: {matchLabels: {a b: c}}}",
        "9: spec.targetFilter: selector parse error: 'a b' cannot be the name of a label (try one like app.k",
    ),
    "a selector of no value": (
        "subsets: [{name: a}]\ntargetFilter: {selector: {matchLabels: {a: b c}}}",
        "9: spec.targetFilter: selector parse error: 'b c' cannot be the value of a label (try letters",
    ),
    "a path": (
        "subsets: [{name: a}]\ntargetFilter: {replicasPathList: ['spec.a[].b']}",
        "9: spec.targetFilter.replicasPathList[0]: 'spec.a[].b' is no path (try 'spec.a.*.b')",
    ),
    "a field": ("subsets: [{name: a}]\nsubset: []", "9: spec.subset: unknown field (try 'subsets')"),
}


@pytest.mark.parametrize(("more", "told"), REFUSED.values(), ids=REFUSED)
def test_what_kruise_refuses_is_told_at_its_field_with_a_way_out(more: str, told: str):
    (found,) = wrong(more)
    assert found.startswith(told)


TARGETS = {
    "none": ("", "no targetRef defined in WorkloadSpread (try targetRef: {apiVersion: apps/v1, kind: Deployment,"),
    "no kind": (
        "{apiVersion: apps/v1, name: vllm}",
        "empty TargetReference is not valid for WorkloadSpread. (say its kind)",
    ),
    "nothing at all": (
        "{}",
        "empty TargetReference is not valid for WorkloadSpread. (say its apiVersion and kind and name)",
    ),
    "another group": (
        "{apiVersion: rollouts.kruise.io/v2, kind: StatefulSet, name: vllm}",
        "TargetReference is not valid for StatefulSet. (StatefulSet is of apps or apps.kruise.io)",
    ),
    "the core's group": (
        "{apiVersion: v1, kind: Deployment, name: vllm}",
        "TargetReference is not valid for Deployment. (Deployment is of apps)",
    ),
    "an unknown kind": (
        "{apiVersion: game.example.com/v1, kind: GameServerSet, name: vllm}",
        (
            "TargetReference's GroupKind is not permitted. "
            "(add a WorkloadKind for game.example.com/GameServerSet, or put it on Kruise's whitelist)"
        ),
    ),
    "a kind that is misspelt": (
        "{apiVersion: apps/v1, kind: Deploymnet, name: vllm}",
        "TargetReference's GroupKind is not permitted. (try kind: Deployment)",
    ),
    "a known kind of another group": (
        "{apiVersion: argo.io/v1, kind: Rollout, name: vllm}",
        "TargetReference's GroupKind is not permitted. (try apiVersion: argoproj.io/v1alpha1)",
    ),
    "a kind without replicas": (
        "{apiVersion: apps/v1, kind: DaemonSet, name: vllm}",
        "TargetReference's GroupKind is not permitted. (add a WorkloadKind for apps/DaemonSet, or",
    ),
}


@pytest.mark.parametrize(("target", "told"), TARGETS.values(), ids=TARGETS)
def test_a_target_that_cannot_be_is_refused(target: str, told: str):
    head = HEAD.partition("  targetRef")[0] + (f"  targetRef: {target}\n" if target else "")
    desired = load({**FLEET, "s.yaml": spread(head=head)})
    (found,) = errors(desired)
    assert found.startswith(f"s.yaml:{7 if target else 6}: spec.targetRef: {told}")
    assert desired.policies[VLLM].spread is None


@pytest.mark.parametrize("api_version", ["apps/v1", "apps.kruise.io/v1beta1"])
def test_percentages_of_ordinals_are_refused(api_version: str):
    head = HEAD.replace("apps/v1, kind: Deployment", f"{api_version}, kind: StatefulSet")
    (found,) = errors(load({**FLEET, "s.yaml": spread("subsets: [{name: a, maxReplicas: 50%}, {name: b}]", head=head)}))
    assert found == (
        "s.yaml:8: spec.subsets[0].maxReplicas: the maxReplicas type must be Int for StatefulSet (try a whole number)"
    )


@pytest.mark.parametrize(("subsets", "most"), [(2, 295), (3, 147), (4, 98)])
def test_all_subsets_are_tried_before_the_first_recovers(subsets: int, most: int):
    listed = f"subsets: [{', '.join(f'{{name: s{number}}}' for number in range(subsets))}]\n"
    assert wrong(listed + ADAPTIVE % most) == []
    assert wrong(listed + ADAPTIVE % 0) == []
    for seconds, way in ((most + 1, f"try {most}"), (-1, "try 30")):
        assert wrong(listed + ADAPTIVE % seconds) == [
            (
                "9: spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds: "
                f"rescheduleCriticalSeconds < 0 or rescheduleCriticalSeconds > {most} is not permitted ({way})"
            )
        ]


def test_one_subset_may_wait_for_ever():
    assert wrong(f"subsets: [{{name: a}}]\n{ADAPTIVE % 86400}") == []


def test_all_that_is_wrong_is_told_at_once():
    more = (
        "subsets:\n"
        "- {name: a, maxReplicas: 60%, tolerations: [{}]}\n"
        "- {name: a, maxReplicas: 60%}\n"
        "- {name: b, maxReplicas: 3, preferredNodeSelectorTerms: [{weight: 0}]}\n"
        "scheduleStrategy: {type: Fixed, adaptive: {rescheduleCriticalSeconds: 200}}\n"
        "targetFilter: {selector: {matchLabels: {a: b c}}}\n"
    )
    places = [line.split(": ")[1] for line in wrong(more)]
    assert places == [
        "spec.subsets[0].tolerations[0].operator",
        "spec.subsets[1].maxReplicas",  # the first that is wrong; the others mean nothing without it
        "spec.subsets[1].name",
        "spec.subsets[2].preferredNodeSelectorTerms[0].weight",
        "spec.scheduleStrategy.adaptive",
        "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds",
        "spec.scheduleStrategy.type",
        "spec.targetFilter",
    ]


def test_what_has_no_effect_is_told():
    more = "subsets: [{name: a, requiredNodeSelectorTerm: {}}, {name: b}]\nscheduleStrategy: {type: Adaptive%s}"
    assert doubtful(spread(more % "")) == [
        (
            "8: spec.subsets[0].requiredNodeSelectorTerm: a term that asks for nothing is met by nothing "
            "(leave requiredNodeSelectorTerm out to select all)"
        ),
        (
            "9: spec.scheduleStrategy.type: is like Fixed without adaptive.rescheduleCriticalSeconds "
            "(try rescheduleCriticalSeconds: 30)"
        ),
    ]
    simulated = ", adaptive: {rescheduleCriticalSeconds: 30, disableSimulationSchedule: true}"
    assert doubtful(spread(more.replace("requiredNodeSelectorTerm: {}", "patch: {}") % simulated)) == [
        (
            "9: spec.scheduleStrategy.adaptive.disableSimulationSchedule: has no effect here "
            "(nothing simulates scheduling, so that there is nothing to disable)"
        )
    ]


def test_an_annotation_that_nobody_knows_is_told():
    source = spread().replace("  name: vllm\n", "  name: vllm\n  annotations: {overspill.dev/worspace: llm}\n", 1)
    assert doubtful(source) == [
        "5: metadata.annotations[\"overspill.dev/worspace\"]: unknown annotation (try 'overspill.dev/workspace')"
    ]


def test_a_spread_may_have_any_name_of_an_object():
    assert (
        governing(load({**FLEET, "s.yaml": spread().replace("  name: vllm\n", "  name: vllm.v2\n", 1)})).name
        == "vllm.v2"
    )
    (told,) = errors(load({**FLEET, "s.yaml": spread().replace("  name: vllm\n", "  name: Vllm_2\n", 1)}))
    assert told == "s.yaml:4: metadata.name: 'Vllm_2' cannot be the name of an object (try 'vllm-2')"


def test_a_broken_spread_stalls_the_policy_of_its_target():
    desired = load({**FLEET, "s.yaml": spread("subsets: []")})
    assert replace(desired.policies[VLLM], stalled="") == load(FLEET).policies[VLLM]
    assert desired.policies[VLLM].stalled
    assert desired.incomplete
    assert warnings(desired) == []


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(
            st.fixed_dictionaries(
                {"key": st.text(max_size=5), "operator": st.sampled_from(["In", "NotIn", "Exists", "Gt", "Is"])},
                optional={"values": st.lists(st.text(max_size=4), max_size=2)},
            ),
            max_size=2,
        )
    },
)
SUBSETS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["a", "b", "", "c"]),
            "maxReplicas": st.integers(-2, 120) | st.sampled_from(["40%", "60%", "0%", "50", "x%", None]),
            "minReplicas": st.integers(-1, 5),
            "requiredNodeSelectorTerm": TERMS,
            "requiredNodeSelector": TERMS,
            "patch": ANYTHING,
            "tolerations": ANYTHING,
        },
    ),
    max_size=4,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "targetRef": st.just({"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"}) | ANYTHING,
            "subsets": SUBSETS | ANYTHING,
            "scheduleStrategy": st.fixed_dictionaries(
                {},
                optional={
                    "type": st.sampled_from(["", "Fixed", "Adaptive", "x"]),
                    "adaptive": st.just({}) | st.fixed_dictionaries({"rescheduleCriticalSeconds": st.integers()}),
                },
            ),
            "targetFilter": ANYTHING,
        },
    )
)
def test_whatever_stands_in_a_spread_it_is_in_force_or_told(spec: object):
    made = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "WorkloadSpread",
        "metadata": {"name": "vllm", "namespace": "llm-demo"},
        "spec": spec,
    }
    desired = load({**FLEET, "s.json": json.dumps(made)})
    assert (desired.policies[VLLM].spread is None) is bool(errors(desired))
