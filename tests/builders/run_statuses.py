"""Statuses of objects that run once, as their controllers write them: while a run goes on, and once it is over."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.workload import Json

CREATED = "2026-11-20T09:00:00Z"
END = "2026-11-20T10:04:00Z"
"""The moment of every end."""

Ended = tuple[tuple[tuple[Json, str], ...], tuple[tuple[Json, str], ...]]
"""Statuses of complete runs, and of failed ones, each with the message."""


def conditions(*types: str, status: str = "True", reason: str = "", message: str = "", **fields: Json) -> Json:
    """Return a status with conditions of these types, and other fields."""
    said = {"status": status, "lastTransitionTime": END, "reason": reason, "message": message}
    return {"conditions": [{"type": name, **said} for name in types], **fields}


def _ended(complete: Json, failed: Json) -> Ended:
    """Return one status of each, with the message or the reason of the last condition."""

    def told(status: Json) -> str:
        last = status["conditions"][-1]
        return str(last["message"] or last["reason"])

    return ((complete, told(complete)),), ((failed, told(failed)),)


def _volcano(phase: str, message: str = "", reason: str = "") -> Json:
    said = {"message": message, "reason": reason, "lastTransitionTime": END}
    return {"state": {"phase": phase, **said}, "minAvailable": 4, "succeeded": 4}


def _ray(deployment: str, job: str, **fields: Json) -> Json:
    return {"jobStatus": job, "jobDeploymentStatus": deployment, "rayClusterName": "train-x7k2p", **fields}


_KUBEFLOW = tuple(
    f"kubeflow.org/{kind}" for kind in ("TFJob", "PyTorchJob", "PaddleJob", "XGBoostJob", "JAXJob", "MPIJob")
)
_STOPPED = "Job was intentionally stopped."


def _pod(phase: str, reason: str, **fields: Json) -> Json:
    state = {"terminated": {"exitCode": 0, "reason": reason, "finishedAt": END}}
    return {"phase": phase, "containerStatuses": [{"name": "main", "state": state}], **fields}


ENDED: Mapping[str, Ended] = {
    "/Pod": (
        ((_pod("Succeeded", "Completed"), "Completed"),),
        (
            (_pod("Failed", "OOMKilled"), "OOMKilled"),
            ({**conditions("DisruptionTarget"), "phase": "Failed", "reason": "Evicted", "message": "low"}, "low"),
        ),
    ),
    "batch/Job": _ended(
        conditions("SuccessCriteriaMet", "Complete", reason="CompletionsReached", message="Reached expected succeeded"),
        conditions("FailureTarget", "Failed", reason="BackoffLimitExceeded", message="Job has reached the limit"),
    ),
    "apps.kruise.io/BroadcastJob": _ended(
        conditions("Complete", message="Job completed, 3 pods succeeded, 0 pods failed", phase="completed"),
        conditions("Failed", message="failure policy is FailurePolicyTypeFailFast", phase="failed"),
    ),
    "jobset.x-k8s.io/JobSet": _ended(
        conditions("Completed", reason="AllJobsCompleted", message="jobset completed successfully"),
        conditions("Failed", reason="FailedJobs", message="jobset failed due to one or more job failures"),
    ),
    "batch.volcano.sh/Job": (
        ((_volcano("Completed"), ""),),
        (
            (_volcano("Failed", message="too many retries"), "too many retries"),
            (_volcano("Terminated", reason="TerminateJob"), "TerminateJob"),
            (_volcano("Aborted"), ""),
        ),
    ),
    **dict.fromkeys(
        _KUBEFLOW,
        _ended(
            conditions("Succeeded", reason="JobSucceeded", message="PyTorchJob train is successfully completed."),
            conditions("Failed", reason="JobFailed"),
        ),
    ),
    "trainer.kubeflow.org/TrainJob": _ended(
        conditions("Complete", reason="AllJobsCompleted", message="jobset completed successfully"),
        conditions("Failed", reason="FailedJobs"),
    ),
    "ray.io/RayJob": (
        (
            (_ray("Complete", "SUCCEEDED", endTime=END, message="finished"), "finished"),
            (_ray("Complete", "SUCCEEDED", rayJobInfo={"endTime": END}), ""),
        ),
        (
            (_ray("Failed", "FAILED", endTime=END, reason="AppFailed"), "AppFailed"),
            (_ray("Failed", "RUNNING", endTime=END, reason="DeadlineExceeded", message="passed"), "passed"),
            (_ray("Complete", "STOPPED", endTime=END, message=_STOPPED), _STOPPED),
            (_ray("Complete", "FAILED", endTime=END), ""),
        ),
    ),
    "workload.codeflare.dev/AppWrapper": (
        ((conditions("ResourcesDeployed", reason="Succeeded", phase="Succeeded"), ""),),
        ((conditions("Unhealthy", message="2 failed pods", phase="Failed"), "2 failed pods"),),
    ),
}
"""By kind."""

GOING_ON: Mapping[str, tuple[Json, ...]] = {
    "/Pod": ({"phase": "Pending"}, {"phase": "Running"}, {"phase": "Unknown"}),
    "batch/Job": (
        conditions("Suspended"),
        conditions("Complete", "Failed", status="False"),
        {"active": 2, "ready": 2, "startTime": CREATED},
    ),
    "apps.kruise.io/BroadcastJob": ({"phase": "running", "active": 1}, {"phase": "paused"}),
    "jobset.x-k8s.io/JobSet": (
        conditions("StartupPolicyCompleted"),
        conditions("Suspended", "RestartingJobSet"),
        conditions("Completed", status="False"),
    ),
    "batch.volcano.sh/Job": tuple(map(_volcano, ("Pending", "Running", "Restarting"))),
    **dict.fromkeys(
        _KUBEFLOW,
        (
            conditions("Created", "Running"),
            conditions("Restarting"),
            conditions("Suspended"),
            conditions("Succeeded", status="False"),
        ),
    ),
    "trainer.kubeflow.org/TrainJob": (conditions("Suspended"), conditions("Complete", status="False")),
    "ray.io/RayJob": (
        _ray("", ""),
        _ray("Running", "RUNNING"),
        _ray("Running", "SUCCEEDED"),
        _ray("Retrying", "FAILED"),
        _ray("Suspended", ""),
        _ray("Waiting", ""),
    ),
    "workload.codeflare.dev/AppWrapper": tuple(
        {"phase": phase} for phase in ("", "Suspended", "Resuming", "Running", "Resetting")
    ),
}
"""By kind, statuses of runs that are not over."""

ENDING: Mapping[str, tuple[Json, ...]] = {
    "batch/Job": (conditions("SuccessCriteriaMet"), conditions("FailureTarget")),
    "batch.volcano.sh/Job": tuple(map(_volcano, ("Completing", "Aborting", "Terminating"))),
    "ray.io/RayJob": (_ray("Suspending", ""),),
    "workload.codeflare.dev/AppWrapper": ({"phase": "Suspending"}, {"phase": "Terminating"}),
}
"""By kind, statuses of runs whose pods are being ended, and that are not over."""
