"""What webhooks would refuse is refused when a file is read: each rule of each project, with a way out that works."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import pytest

from reconciler.core.safety.rules import check_safety
from reconciler.core.validation.admission.rule import AdmissionRule, AdmissionSubject
from reconciler.core.validation.admission.table import PROJECTS, check_admission
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.errors import Severity
from reconciler.model.workload import Json
from tests.builders.deploy_specs import WORKSPACE, spec
from tests.builders.workload_kinds import SAMPLES, lws, pod, template
from tests.validation.test_admission_leaderworkerset import WRONG
from tests.workloads.test_kind_rules import findings

KUEUE = "kueue.x-k8s.io/"
QUEUED = {"metadata/labels/kueue.x-k8s.io~queue-name": "research"}


def edited(made: Json, **changes: Json) -> Json:
    """Put values at paths, a slash in a name written as ``~``; an index stands for an item."""
    made = copy.deepcopy(made)
    for place, value in changes.items():
        *parents, last = (part.replace("~", "/") for part in place.split("/"))
        inner = made
        for part in parents:
            inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
        if isinstance(inner, list):
            inner[int(last)] = value
        else:
            inner[last] = value
    return made


def annotated(root: str, **names: str) -> dict[str, Json]:
    """Annotate a pod template with Kueue's annotations of topologies, by the ends of their names."""
    return {
        f"{root}/metadata/annotations/kueue.x-k8s.io~podset-{name.replace('_', '-')}": value
        for name, value in names.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An object that a webhook refuses: where that is told, a part of the message, and a change that mends it."""

    made: Json
    where: str
    says: str
    mended: dict[str, Json]


JOBSET = edited(
    SAMPLES["JobSet"][0],
    **{
        "spec/replicatedJobs": [
            {"name": name, "replicas": 2, "template": {"spec": {"completions": 2, "template": template()}}}
            for name in ("driver", "workers")
        ]
    },
)
DISAGGREGATED, ROLE = SAMPLES["DisaggregatedSet"][0], "spec/roles/0/spec"
JOB, CLONE, UNITED = SAMPLES["Job"][0], SAMPLES["CloneSet"][0], SAMPLES["UnitedDeployment"][0]
STATEFUL, DAEMON = SAMPLES["StatefulSet of OpenKruise"][0], SAMPLES["DaemonSet of OpenKruise"][0]
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "model", "namespace": "demo"}, "spec": pod(1)}
WORKER, LEADER = "spec/leaderWorkerTemplate/workerTemplate", "spec/leaderWorkerTemplate/leaderTemplate"
BOTH = lws(size=3, leader=8)
SUBSETS = [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 2}]
CLAIMS = [{"templates": [{"metadata": {"name": "data"}, "spec": {}}]}]
DRIVER = "spec/replicatedJobs/0/template/spec/template"

REFUSED = (
    Refused(
        made=edited(JOBSET, **{"spec/replicatedJobs/1/dependsOn": [{"name": "nobody", "status": "Ready"}]}),
        where="spec.replicatedJobs.1.dependsOn.0.name",
        says="no replicatedJob before it is called 'nobody'",
        mended={"spec/replicatedJobs/1/dependsOn/0/name": "driver"},
    ),
    Refused(
        made=edited(JOBSET, **{"spec/successPolicy/operator": "Most"}),
        where="spec.successPolicy.operator",
        says="'Most' is not one of All, Any",
        mended={"spec/successPolicy/operator": "Any"},
    ),
    Refused(
        made=edited(JOBSET, **{"spec/network/subdomain": "a.b"}),
        where="spec.network.subdomain",
        says="'a.b' cannot be the name of a Service",
        mended={"spec/network/subdomain": "a-b"},
    ),
    Refused(
        made=edited(JOBSET, **{"spec/managedBy": "me"}),
        where="spec.managedBy",
        says="'me' names no controller",
        mended={"spec/managedBy": "jobset.sigs.k8s.io/jobset-controller"},
    ),
    Refused(
        made=edited(JOBSET, **{"metadata/name": "a" * 50}),
        where="spec.replicatedJobs.0.name",
        says="the pod aaaa",
        mended={"metadata/name": "a" * 30},
    ),
    Refused(
        made=edited(JOBSET, **{"spec/failurePolicy/rules": [{"name": "1st", "action": "FailJobSet"}]}),
        where="spec.failurePolicy.rules.0.name",
        says="'1st' cannot be the name of a rule",
        mended={"spec/failurePolicy/rules/0/name": "first"},
    ),
    Refused(
        made=edited(JOBSET, **{"spec/coordinator": {"replicatedJob": "driver", "podIndex": 2}}),
        where="spec.coordinator.podIndex",
        says="2 is out of reach: replicatedJob driver has 0 to 1",
        mended={"spec/coordinator/podIndex": 0},
    ),
    Refused(
        made=edited(JOBSET, **{"spec/volumeClaimPolicies": CLAIMS}),
        where="spec.volumeClaimPolicies.0.templates.0.metadata.name",
        says="no container mounts the claim 'data'",
        mended={f"{DRIVER}/spec/containers/0/volumeMounts": [{"name": "data", "mountPath": "/data"}]},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"spec/slices": 101}),
        where="spec.slices",
        says="is 101, and a DisaggregatedSet has 1 to 100",
        mended={"spec/slices": 100},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"spec/roles": DISAGGREGATED["spec"]["roles"][:1]}),
        where="spec.roles",
        says="a DisaggregatedSet has 2 to 10 roles, and this has 1",
        mended={"spec/roles": DISAGGREGATED["spec"]["roles"]},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"spec/roles/1/name": "prefill"}),
        where="spec.roles.1.name",
        says="role 'prefill' is there twice",
        mended={"spec/roles/1/name": "decode"},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"spec/roles/1/name": "De_code"}),
        where="spec.roles.1.name",
        says="'De_code' cannot be the name of a role",
        mended={"spec/roles/1/name": "decode"},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"spec/roles/1/scaling": {"mode": "Auto"}}),
        where="spec.roles.1.scaling.mode",
        says="'Auto' is not one of Static, External",
        mended={"spec/roles/1/scaling/mode": "Static"},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"spec/placementPolicy": {"type": "Alone", "topology": "rack"}}),
        where="spec.placementPolicy.type",
        says="'Alone' is not one of None, ExclusiveSlice, ExclusiveTopology",
        mended={"spec/placementPolicy/type": "ExclusiveSlice"},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"metadata/name": "a" * 41}),
        where="spec.roles.0.name",
        says="makes a Service with a name of 64 characters, and 63 are the most",
        mended={"metadata/name": "a" * 40},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"metadata/name": "1st.set"}),
        where="metadata.name",
        says="'1st.set' cannot begin the name of a Service",
        mended={"metadata/name": "first-set"},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"spec/roles/1/spec/replicas": 0}),
        where="spec.roles.1.spec.replicas",
        says="is 0 while prefill has replicas",
        mended={"spec/roles/0/spec/replicas": 0},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"spec/roles/1/scaling": {"mode": "External"}}),
        where="spec.slices",
        says="is more than 1, and a role has scaling.mode External",
        mended={"spec/slices": 1},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{f"{ROLE}/rolloutStrategy/rollingUpdateConfiguration": {"partition": 1}}),
        where="spec.roles.0.spec.rolloutStrategy.rollingUpdateConfiguration.partition",
        says="a DisaggregatedSet updates all roles together, and takes no partition",
        mended={f"{ROLE}/rolloutStrategy/rollingUpdateConfiguration": {}},
    ),
    Refused(
        made=edited(DISAGGREGATED, **{"spec/placementPolicy": {"type": "ExclusiveSlice"}}),
        where="spec.placementPolicy",
        says="the placement 'ExclusiveSlice' needs a topology",
        mended={"spec/placementPolicy/topology": "rack"},
    ),
    Refused(
        made=edited(
            DISAGGREGATED,
            **{
                "spec/placementPolicy": {"type": "ExclusiveTopology", "topology": "rack"},
                "spec/roles/0/metadata/annotations/leaderworkerset.sigs.k8s.io~exclusive-topology": "rack",
            },
        ),
        where="spec.roles.0.metadata.annotations.leaderworkerset.sigs.k8s.io/exclusive-topology",
        says="a role has no topology of its own beside the placement 'ExclusiveTopology'",
        mended={"spec/placementPolicy/type": "None"},
    ),
    Refused(
        made=edited(
            DISAGGREGATED,
            **{f"{ROLE}/rolloutStrategy/rollingUpdateConfiguration": {"maxUnavailable": "25%", "maxSurge": 0}},
        ),
        where="spec.roles.0.spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable",
        says="may not come to 0 replicas where maxSurge is 0",
        mended={f"{ROLE}/rolloutStrategy/rollingUpdateConfiguration/maxUnavailable": "50%"},
    ),
    Refused(
        made=edited(lws(), **{"metadata/labels/kueue.x-k8s.io~queue-name": "Research_1"}),
        where="metadata.labels.kueue.x-k8s.io/queue-name",
        says="'Research_1' cannot be the name of a queue, so that Kueue refuses it",
        mended={"metadata/labels/kueue.x-k8s.io~queue-name": "research-1"},
    ),
    Refused(
        made=edited(SAMPLES["JAXJob"][0], **{"metadata/labels/kueue.x-k8s.io~prebuilt-workload-name": "made"}),
        where="metadata.labels.kueue.x-k8s.io/prebuilt-workload-name",
        says="Kueue admits no JAXJob by a Workload that was made before",
        mended={"metadata/labels": {}},
    ),
    Refused(
        made=edited(JOB, **{"metadata/labels/kueue.x-k8s.io~max-exec-time-seconds": "0"}),
        where="metadata.labels.kueue.x-k8s.io/max-exec-time-seconds",
        says="'0' is no number of seconds above 0",
        mended={"metadata/labels/kueue.x-k8s.io~max-exec-time-seconds": "3600"},
    ),
    Refused(
        made=edited(lws(), **{"metadata/annotations/kueue.x-k8s.io~elastic-job": "true"}),
        where="metadata.annotations.kueue.x-k8s.io/elastic-job",
        says="Kueue has no elastic LeaderWorkerSet, so that Kueue 0.18 and later refuses it",
        mended={"metadata/annotations": {}},
    ),
    Refused(
        made=edited(JOB, **{"metadata/annotations/kueue.x-k8s.io~admission-gated-by": "approval"}),
        where="metadata.annotations.kueue.x-k8s.io/admission-gated-by",
        says="'approval' names no gate of admission",
        mended={"metadata/annotations/kueue.x-k8s.io~admission-gated-by": "example.com/approval"},
    ),
    Refused(
        made=edited(lws(), **annotated(WORKER, required_topology="rack", preferred_topology="rack")),
        where="spec.leaderWorkerTemplate.workerTemplate.metadata.annotations.kueue.x-k8s.io/podset-preferred-topology",
        says="a pod set has one topology annotation",
        mended={f"{WORKER}/metadata/annotations": {}},
    ),
    Refused(
        made=edited(lws(size=3), **annotated(WORKER, slice_required_topology="rack", slice_size="4")),
        where="spec.leaderWorkerTemplate.workerTemplate.metadata.annotations.kueue.x-k8s.io/podset-slice-size",
        says="a slice of 4 is larger than its pod set of 3 pods",
        mended=annotated(WORKER, slice_size="3"),
    ),
    Refused(
        made=edited(
            JOB, **annotated("spec/template", slice_required_topology_constraints='[{"topology": "rack", "size": 9}]')
        ),
        where="spec.template.metadata.annotations.kueue.x-k8s.io/podset-slice-required-topology-constraints",
        says="a slice of 9 is larger than its pod set of 3 pods",
        mended=annotated("spec/template", slice_required_topology_constraints='[{"topology": "rack", "size": 3}]'),
    ),
    Refused(
        made=edited(BOTH, **annotated(WORKER, required_topology="r", group_name="7"),
                    **annotated(LEADER, required_topology="r", group_name="7")),
        where="spec.leaderWorkerTemplate.leaderTemplate.metadata.annotations.kueue.x-k8s.io/podset-group-name",
        says="'7' cannot be the name of a group of pod sets: it is a number",
        mended={**annotated(WORKER, group_name="group-7"), **annotated(LEADER, group_name="group-7")},
    ),
    Refused(
        made=edited(BOTH, **annotated(WORKER, group_name="g"), **annotated(LEADER, group_name="g")),
        where="spec.leaderWorkerTemplate.leaderTemplate.metadata.annotations.kueue.x-k8s.io/podset-group-name",
        says="a group of pod sets needs a required or a preferred topology",
        mended={**annotated(WORKER, required_topology="r"), **annotated(LEADER, required_topology="r")},
    ),
    Refused(
        made=edited(BOTH, **annotated(WORKER, required_topology="r"),
                    **annotated(LEADER, required_topology="r", group_name="g")),
        where="spec.leaderWorkerTemplate.leaderTemplate.metadata.annotations.kueue.x-k8s.io/podset-group-name",
        says="the group 'g' has 1 pod set, and Kueue takes two",
        mended=annotated(WORKER, group_name="g"),
    ),
    Refused(
        made=edited(JOB, **{"metadata/annotations/kueue.x-k8s.io~job-min-parallelism": "3"}),
        where="metadata.annotations.kueue.x-k8s.io/job-min-parallelism",
        says="a minimal parallelism of 3 is not between 0 and the 3 pods of the Job",
        mended={"metadata/annotations/kueue.x-k8s.io~job-min-parallelism": "2"},
    ),
    Refused(
        made=edited(SAMPLES["RayCluster"][0], **QUEUED, **{"spec/enableInTreeAutoscaling": True}),
        where="spec.enableInTreeAutoscaling",
        says="a Ray cluster in a queue scales by itself only as an elastic job",
        mended={"metadata/annotations/kueue.x-k8s.io~elastic-job": "true"},
    ),
    Refused(
        made=edited(POD, **{"metadata/labels/kueue.x-k8s.io~pod-group-name": "g"}),
        where="metadata.labels.kueue.x-k8s.io/pod-group-name",
        says="a group of pods needs the number of its pods",
        mended={"metadata/annotations/kueue.x-k8s.io~pod-group-total-count": "2"},
    ),
    Refused(
        made=edited(CLONE, **{"spec/selector/matchLabels": {"app": "other"}}),
        where="spec.selector.matchLabels.app",
        says="the pods do not have app: other",
        mended={"spec/selector/matchLabels": {"app": "model"}},
    ),
    Refused(
        made=edited(CLONE, **{"spec/updateStrategy": {"maxUnavailable": 0}}),
        where="spec.updateStrategy.maxUnavailable",
        says="maxSurge and maxUnavailable cannot both be 0",
        mended={"spec/updateStrategy/maxUnavailable": 1},
    ),
    Refused(
        made=edited(STATEFUL, **{"spec/updateStrategy/rollingUpdate/maxUnavailable": 2}),
        where="spec.updateStrategy.rollingUpdate.maxUnavailable",
        says="2 needs pods that are managed in parallel",
        mended={"spec/podManagementPolicy": "Parallel"},
    ),
    Refused(
        made=edited(DAEMON, **{"spec/updateStrategy/rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}),
        where="spec.updateStrategy.rollingUpdate.maxSurge",
        says="maxSurge and maxUnavailable exclude each other",
        mended={"spec/updateStrategy/rollingUpdate/maxSurge": 0},
    ),
    Refused(
        made=edited(UNITED, **{"spec/topology": {"subsets": SUBSETS}}),
        where="spec.topology.subsets",
        says="its subsets have 4 replicas of 3",
        mended={"spec/topology": {"subsets": [*SUBSETS[:1], {"name": "b"}]}},
    ),
    Refused(
        made=edited(SAMPLES["BroadcastJob"][0], **{"metadata/name": "a" * 64}),
        where="metadata.name",
        says="cannot be the name of a BroadcastJob",
        mended={"metadata/name": "a" * 63},
    ),
    Refused(
        made=edited(
            SAMPLES["BroadcastJob"][0], **{"spec/completionPolicy": {"type": "Never", "activeDeadlineSeconds": 60}}
        ),
        where="spec.completionPolicy.activeDeadlineSeconds",
        says="a job that never completes has none",
        mended={"spec/completionPolicy": {"type": "Never"}},
    ),
    Refused(
        made=edited(SAMPLES["AdvancedCronJob"][0], **{"spec/template": {}}),
        where="spec.template",
        says="one of broadcastJobTemplate, imageListPullJobTemplate, jobTemplate is required",
        mended={"spec/template": SAMPLES["AdvancedCronJob"][0]["spec"]["template"]},
    ),
)  # fmt: skip # a table, filled row by row


def told(made: Json) -> list[tuple[str, str]]:
    found = check_admission(made, (), NO_KINDS, rendered=False)
    return [(".".join(map(str, finding.loc)), finding.message) for finding in found]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.where)
def test_it_is_told_at_its_field_and_the_way_out_works(case: Refused) -> None:
    assert any(where == case.where and case.says in message for where, message in told(case.made)), told(case.made)
    assert told(edited(case.made, **case.mended)) == []


def test_each_rule_refuses_something() -> None:
    objects = [
        *(case.made for case in REFUSED),
        *(made for made, _, _ in WRONG),
        edited(lws(), **{"metadata/name": "1"}),
    ]
    subjects = [AdmissionSubject(manifest=made, kinds=NO_KINDS, rendered=False) for made in objects]

    def idle(rule: AdmissionRule) -> bool:
        return not any(found for subject in subjects for found in rule.findings(subject))

    assert [rule.refuses for project in PROJECTS for rule in project.rules if idle(rule)] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_no_sample_is_refused(name: str) -> None:
    assert told(SAMPLES[name][0]) == []


@pytest.mark.parametrize("queue", [False, True])
def test_kueue_refuses_for_sure_only_what_is_in_a_queue(queue: bool) -> None:
    made = edited(lws(size=3), **annotated(WORKER, slice_size="2"), **(QUEUED if queue else {}))
    (finding,) = check_admission(made, (), NO_KINDS, rendered=False)
    assert finding.severity is (Severity.ERROR if queue else Severity.WARNING)


def test_expressions_are_asked_about_once_they_are_rendered() -> None:
    root = annotated("spec/template", slice_required_topology="{{ cluster.labels.rack }}", slice_size="9")
    assert told(edited(JOB, **root, **{"spec/parallelism": "{{ replicas }}"})) == []
    assert told(edited(JOB, **root, **{"spec/parallelism": 2}))


def test_a_warning_of_kueue_hides_no_error_of_the_api_server() -> None:
    made = edited(POD, **{"metadata/labels/kueue.x-k8s.io~pod-group-name": "g_"})
    found = check_safety(spec(("web", made)), replace(WORKSPACE, namespaces=()))
    errors = [finding.message for finding in found if finding.severity is Severity.ERROR]
    assert errors == ["'g_' cannot be the value of a label"]


def test_an_indexed_job_has_completions() -> None:
    made = edited(JOB, **{"spec/completionMode": "Indexed"})
    assert findings(made) == []
    del made["spec"]["completions"]
    assert [finding.message for finding in findings(made)] == ["an Indexed Job needs the number of its completions"]
