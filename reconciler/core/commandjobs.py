"""Which commands may run, and the Job that runs one in the destination cluster.

The daemon never runs a command. Where a workspace allows command Jobs, what no object can say becomes the Job of
reference/gitops-engines.md, section 4; where it does not, it is refused.
"""

from __future__ import annotations

import hashlib
import re

from reconciler.core.commands import Checks, Outcome, RefusedCommand, Runs
from reconciler.core.findings import shortened
from reconciler.model.ids import PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.policy import CommandJobs
from reconciler.model.workload import Json

JOB_NAMESPACE = "kubeslice-system"
"""Where the service account of commands lives, so where their Jobs have to run (gitops-engines.md, section 2)."""

STEP_LABEL = "overspill.dev/step"
"""What tells a command's Job from a workload."""

JOB_DEADLINE = 300
"""Seconds after which a command Job is ended; kubectl either answers by then or never will."""

_PINNED = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")


def refusal(outcome: Outcome, jobs: CommandJobs | None, service_account: str) -> RefusedCommand | None:
    """Say why a command cannot be taken in a workspace with (or, None, without) command Jobs, or None if it can."""
    if isinstance(outcome, RefusedCommand):
        return outcome
    if not isinstance(outcome, Runs):
        return None
    if jobs is None:
        what = " ".join(shortened(word, 20) for word in outcome.argv[:2] if not word.startswith("-"))
        return RefusedCommand(
            message=f"'{what}' would have to run in the cluster, and the workspace has no command Jobs",
            hint="write it as a manifest, or set commandJobs in the Workspace",
        )
    return _unfit(jobs, service_account)


def _unfit(jobs: CommandJobs, service_account: str) -> RefusedCommand | None:
    """Say what is missing for a command Job."""
    if _PINNED.fullmatch(jobs.image) is None:
        return RefusedCommand(
            message="the image of command Jobs is not pinned", hint="name@sha256:... in the Workspace"
        )
    if service_account in ("", "default"):
        return RefusedCommand(
            message="a command Job needs a service account of its own", hint="set spec.serviceAccount"
        )
    return None


def argv(outcome: Outcome, jobs: CommandJobs | None, service_account: str) -> tuple[str, ...]:
    """Return what a Job is to run for a command, empty for none.

    A check runs only where Jobs are possible anyway: it changes nothing, so nothing is lost without it.
    """
    if isinstance(outcome, Runs):
        return outcome.argv
    if isinstance(outcome, Checks) and jobs is not None and _unfit(jobs, service_account) is None:
        return outcome.argv
    return ()


def job(placement: PlacementName, number: int, step: str, words: tuple[str, ...], *, image: str, account: str) -> Json:
    """Make the Job that runs a command: not a hook, without a TTL, in exec form, unprivileged, with a deadline.

    A hook would run again with each sync, and a TTL makes Argo CD run it again (gitops-engines.md, section 3). The name
    says what it runs, since a Job cannot be changed: another command or image is another Job.
    """
    ordinal = f"{number:02d}"
    digest = hashlib.sha256("\0".join((*words, image, account)).encode()).hexdigest()[:8]
    room = 63 - len(f"{placement}-{ordinal}--{digest}")
    label = re.sub(r"[^a-z0-9]+", "-", step.lower()).strip("-")[: max(room, 0)].strip("-")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "-".join(part for part in (placement, ordinal, label, digest) if part),
            "namespace": JOB_NAMESPACE,
            "labels": {PLACEMENT_LABEL: str(placement), STEP_LABEL: ordinal},
        },
        "spec": {
            "backoffLimit": 1,
            "activeDeadlineSeconds": JOB_DEADLINE,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "serviceAccountName": account,
                    "automountServiceAccountToken": True,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [
                        {
                            "name": "cmd",
                            "image": image,
                            "command": list(words),
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                            },
                            "resources": {
                                "requests": {"cpu": "50m", "memory": "64Mi"},
                                "limits": {"memory": "256Mi"},
                            },
                        }
                    ],
                },
            },
        },
    }
