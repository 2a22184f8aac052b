"""What the API server says when a controller may not create a pod: in the condition ReplicaFailure, and in Events.

``pods "vllm-1-x" is forbidden: exceeded quota: ...`` is the answer of an admission plugin, `NewForbidden` in
apiserver 0.36.3, pkg/admission/errors.go. Each plugin has its own words. A webhook's are behind its name, whatever it
says: one that refuses for a quota of its own is no ResourceQuota.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from reconciler.core.observe.kubernetes.words.sayings import PodWait, Saying, Sayings, one_line
from reconciler.model.wait_reason import WaitReason

_SERVER = "kube-apiserver 1.36.3"
_QUOTAS = f"{_SERVER}, k8s.io/apiserver/pkg/admission/plugin/resourcequota"
_PLUGINS = f"{_SERVER}, plugin/pkg/admission"
_WEBHOOKS = f"{_SERVER}, k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go"
_CHANGE_TEMPLATE = "change the pod template, or the rule"


def _quota(says: str, source: str) -> Saying:
    return Saying(says=says, reason=WaitReason.QUOTA, cause="pods refused: quota exceeded", source=source)


def _policy(says: str, cause: str, source: str, way_out: str = _CHANGE_TEMPLATE) -> Saying:
    return Saying(says=says, reason=WaitReason.POLICY, cause=f"pods refused: {cause}", way_out=way_out, source=source)


def _missing(says: str, cause: str, source: str) -> Saying:
    return Saying(
        says=says,
        reason=WaitReason.MISSING_OBJECT,
        cause=f"pods refused: {cause} does not exist",
        way_out="create it, or name another in the pod template",
        source=source,
    )


def _webhook(says: str, cause: str, way_out: str, source: str) -> Saying:
    return Saying(says=says, reason=WaitReason.WEBHOOK, cause=f"pods refused: {cause}", way_out=way_out, source=source)


REFUSALS = Sayings(
    _quota("exceeded quota: {quota}", f"{_QUOTAS}/controller.go"),
    _quota("insufficient quota to consume:", f"{_QUOTAS}/controller.go"),
    _quota("insufficient quota to match these scopes:", f"{_QUOTAS}/controller.go"),
    _policy(
        "failed quota: {quota}: must specify {resources}",
        "ResourceQuota {quota} wants them to state {resources}",
        f"{_QUOTAS}/controller.go",
        "state it in the pod template, or give the namespace a LimitRange with defaults",
    ),
    _quota("status unknown for quota:", f"{_QUOTAS}/controller.go"),  # ReplicaFailure keeps its first message
    _policy(
        'violates PodSecurity "{level}": {rules}',
        "Pod Security {level} forbids {rules}",
        f"{_SERVER}, k8s.io/pod-security-admission/admission/admission.go",
        "change the pod template, or the Pod Security labels of the namespace",
    ),
    _policy(
        "unable to validate against any security context constraint",
        "no security context constraint allows them",
        "OpenShift 4, apiserver-library-go, pkg/securitycontextconstraints/sccadmission/admission.go",
    ),
    _policy(
        "ValidatingAdmissionPolicy '{policy}' …denied request: {rule}",
        "ValidatingAdmissionPolicy {policy} forbids them: {rule}",
        f"{_SERVER}, k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go",
    ),
    *(
        _policy(
            says,
            "a LimitRange forbids them: " + cause,
            f"{_PLUGINS}/limitranger/admission.go",
            "change the requests and limits of the pod template, or the LimitRange of the namespace",
        )
        for says, cause in (
            ("maximum {resource} usage per {kind} is {bound}", "maximum {resource} per {kind}"),
            ("minimum {resource} usage per {kind} is {bound}", "minimum {resource} per {kind}"),
            ("{resource} max limit to request ratio per {kind} is", "ratio of {resource} per {kind}"),
        )
    ),
    *(
        _policy(says, cause, f"{_PLUGINS}/{source}")
        for says, cause, source in (
            (
                "pod node label selector",
                "their node selector conflicts with the namespace's",
                "podnodeselector/admission.go",
            ),
            (
                "pod tolerations (possibly merged with namespace default tolerations) conflict",
                "their tolerations conflict with the namespace's",
                "podtolerationrestriction/admission.go",
            ),
            (
                "the integer value of priority",
                "their priority is not that of their PriorityClass",
                "priority/admission.go",
            ),
        )
    ),
    _missing(
        "error looking up service account {account}:",
        "service account {account}",
        f"{_PLUGINS}/serviceaccount/admission.go",
    ),
    _missing(
        "no PriorityClass with name {name} was found", "PriorityClass {name}", f"{_PLUGINS}/priority/admission.go"
    ),
    _missing(
        'pod rejected: RuntimeClass "{name}" not found', "RuntimeClass {name}", f"{_PLUGINS}/runtimeclass/admission.go"
    ),
    _policy(
        "volume with secret.secretName=",
        "their service account does not list a Secret",
        f"{_PLUGINS}/serviceaccount/admission.go",
    ),
    Saying(
        says="unable to create new content in namespace {namespace} because it is being terminated",
        reason=WaitReason.MISSING_OBJECT,
        cause="pods refused: namespace {namespace} is being deleted",
        source=f"{_SERVER}, k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go",
    ),
    _webhook(
        'admission webhook "{webhook}" denied the request: {words}',
        "webhook {webhook} denied them: {words}",
        "do what the webhook says, or change its rule",
        _WEBHOOKS,
    ),
    _webhook(
        'admission webhook "{webhook}" denied the request',
        "webhook {webhook} denied them",
        "see the log of the webhook",
        _WEBHOOKS,
    ),
    _webhook(
        'failed calling webhook "{webhook}"',
        "webhook {webhook} does not answer",
        "see whether the webhook's pods run and its certificate holds",
        f"{_SERVER}, k8s.io/apiserver/pkg/util/webhook/error.go",
    ),
    _policy(
        'Pod "{pod}" is invalid: {what}',
        "invalid: {what}",
        f"{_SERVER}, k8s.io/apimachinery/pkg/api/errors/errors.go",
        "correct the pod template",
    ),
    Saying(
        says='User "{user}" cannot create resource',
        reason=WaitReason.POLICY,
        cause="pods refused: {user} has no right to create them",
        way_out="give it the right",
        source=f"{_SERVER}, k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go",
    ),
)
"""What is behind ``is forbidden: ``, or is the whole of a message."""

_BEGINS = re.compile(
    r'(?=admission webhook "|failed calling webhook "|Pod "[^"]*" is invalid)'
    r'|(?<![\w.])[\w.]+(?: "[^"]*")? is forbidden: \[?'
)
"""Where the words of a plugin begin: behind those of the controller and the API server, and a bracket."""
_CONTROLLER = re.compile(r"(?:Error creating|create Pod \S+ in StatefulSet \S+ failed error): ")
_PRINTED = re.compile(r'&errors\.StatusError\{.*?[ {]Message:"((?:[^"\\]|\\.)*)"')
"""An answer as Volcano's job controller prints it, with Go's ``%#v``: "Error creating pods: [failed to create pod x,
err: &errors.StatusError{ErrStatus:v1.Status{..., Message:"...", Details:(*v1.StatusDetails)(0x24c5e0473560), ...}}]"
(Volcano 1.14.1, pkg/controllers/job/job_controller_actions.go). The first of them stands for all."""
_LONGEST = 160


class CreationEvent(NamedTuple):
    """How a controller says that it could not create a pod."""

    reason: str
    begins: str
    """How the message begins, where the Event has other reasons too; empty for any."""
    source: str


CREATION_EVENTS = (
    CreationEvent(
        "FailedCreate",
        "",
        "Kubernetes 1.36, pkg/controller; LeaderWorkerSet, OpenKruise, Volcano 1.14.1, pkg/controllers/job/constant.go",
    ),
    CreationEvent("FailedToCreateHeadPod", "", "KubeRay 1.5.0, ray-operator/controllers/ray/utils/constant.go"),
    CreationEvent("FailedToCreateWorkerPod", "", "KubeRay 1.5.0, ray-operator/controllers/ray/utils/constant.go"),
    CreationEvent("FailedCreatePod", "", "Training Operator 1.9.3, pkg/controller.v1/control/pod_control.go"),
    CreationEvent(
        "MPIJobFailed", "worker pod created failed: ", "MPI Operator 0.8.0, pkg/controller/mpi_job_controller.go"
    ),
    CreationEvent("PodCreateFailed", "", "Grove fcc3b3bb, operator/internal/constants/constants.go"),
)
"""The Events of controllers whose pods are refused."""


def is_refused_creation(reason: str, message: str) -> bool:
    """Return whether an Event says that a controller could not create a pod."""
    return any(reason == event.reason and message.startswith(event.begins) for event in CREATION_EVENTS)


@lru_cache(maxsize=4096)
def refusal_wait(message: str) -> PodWait:
    """Return what pods wait for that a controller may not create, by the words of its condition or Event.

    Words that the table does not have are an error, which no room elsewhere ends.
    """
    text = _CONTROLLER.sub("", one_line(message), count=1)
    if printed := _PRINTED.search(text):
        text = printed[1].replace('\\"', '"')
    begins = _BEGINS.search(text)
    inner = text if begins is None else text[begins.end() :]
    if wait := REFUSALS.wait(inner):
        return wait
    return PodWait(
        reason=WaitReason.ERROR,
        cause=f"pods refused by the API server: {inner}"[:_LONGEST] if inner else "pods refused by the API server",
        way_out="see the Events of its ReplicaSet or Job",
    )
