"""What a platform's projects refuse beyond the schemas of their kinds, asked of their own functions.

For each project a `main.go` in `tools/` calls the functions behind its validating webhooks, and those with which its
controllers refuse an object, as released. Objects go in and answers come out as JSON, one a line.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.api_server import Json
from tests.e2e.published_kinds import PROJECTS, Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An object whose schema takes a change that the project's rules refuse: the change by path, and their words."""

    name: str
    change: tuple[tuple[str, Json], ...]
    refusal: str

    def made(self, objects: Mapping[str, Json]) -> Json:
        """Return the object of that name with the change; a number in a path is an index."""
        made = json.loads(json.dumps(objects[self.name]))
        for path, value in self.change:
            *parents, last = path.split("/")
            inner = made
            for part in parents:
                inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
            inner[last] = value
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a project: the component that asks them, and what proves that they are asked.

    `unasked` are kinds, as ``version/Kind``, whose functions it does not have.
    """

    project: Project
    component: str
    broken: tuple[Broken, ...]
    unasked: tuple[str, ...] = ()

    def judge(self, made: Json) -> bool:
        """Return whether there is a rule for the kind and version of an object of the project."""
        return f"{made['apiVersion'].rpartition('/')[2]}/{made['kind']}" not in self.unasked


def refusals(program: Path, objects: Iterable[Json]) -> list[str]:
    """Return why the rules refuse each object, in order; an empty string for one that they take."""
    lines = "".join(f"{json.dumps(each)}\n" for each in objects)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


_PROJECT = {project.tool: project for project in PROJECTS}

RULES = (
    Rules(
        project=_PROJECT["training-operator"],
        component="training-operator-rules",
        broken=(
            Broken(
                name="PyTorchJob",
                change=(("spec/pytorchReplicaSpecs/Master/replicas", 2),),
                refusal="spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1",
            ),
            Broken(
                name="TFJob",
                change=(("spec/tfReplicaSpecs/Worker/template/spec/containers/0/name", "main"),),
                refusal="must have at least one container with name tensorflow",
            ),
            Broken(
                name="MPIJob",
                change=(("spec/mpiReplicaSpecs/Launcher/replicas", 2),),
                refusal="There must be only 1 launcher replica",
            ),
        ),
        unasked=("v1/PaddleJob", "v1/XGBoostJob", "v1/JAXJob"),
    ),
    Rules(
        project=_PROJECT["mpi-operator"],
        component="mpi-operator-rules",
        broken=(
            Broken(
                name="MPIJob v2beta1",
                change=(("metadata/name", "1-model"),),
                refusal='will not able to create pod and service with invalid DNS label "1-model-worker-1"',
            ),
            Broken(
                name="MPIJob v2beta1",
                change=(("spec/mpiReplicaSpecs/Worker/replicas", 0),),
                refusal="spec.mpiReplicaSpecs[Worker].replicas: Invalid value: 0: must be greater than or equal to 1",
            ),
        ),
    ),
    Rules(
        project=_PROJECT["kuberay"],
        component="kuberay-rules",
        broken=(
            Broken(
                name="RayCluster",
                change=(("metadata/name", "1-model"),),
                refusal="RayCluster name should be a valid DNS1035 label",
            ),
            Broken(
                name="RayJob",
                change=(("spec/suspend", True),),
                refusal="a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended",
            ),
            Broken(
                name="RayService",
                change=(("spec/rayClusterConfig/headGroupSpec/headService/metadata/name", "head"),),
                refusal="spec.rayClusterConfig.headGroupSpec.headService.metadata.name should not be set",
            ),
        ),
    ),
    Rules(
        project=_PROJECT["kserve"],
        component="kserve-rules",
        broken=(
            Broken(
                name="LLMInferenceService",
                change=(("spec/parallelism", {"data": 16}),),
                refusal="dataLocal must be set when data is set",
            ),
            Broken(
                name="LLMInferenceService",
                change=(("spec/router/scheduler/config", {}),),
                refusal="either inline or ref is required",
            ),
        ),
        # Their functions need the clients of all clouds that models come from: hundreds of packages more.
        unasked=("v1beta1/InferenceService", "v1alpha1/LLMInferenceService"),
    ),
    Rules(
        project=_PROJECT["volcano"],
        component="volcano-rules",
        broken=(
            Broken(
                name="Job of Volcano",
                change=(("spec/minAvailable", 9),),
                refusal="job 'minAvailable' should not be greater than total replicas in tasks",
            ),
            Broken(
                name="Job of Volcano",
                change=(("spec/plugins", {"mpi": ["--master=head"]}),),
                refusal="The specified mpi master task was not found",
            ),
        ),
    ),
    Rules(
        project=_PROJECT["kruise"],
        component="kruise-rules",
        broken=(
            Broken(
                name="CloneSet",
                change=(("spec/selector/matchLabels", {"app": "other"}),),
                refusal="`selector` does not match template `labels`",
            ),
            Broken(
                name="BroadcastJob",
                change=(("spec/template/spec/restartPolicy", "Always"),),
                refusal="pod restartPolicy can only be Never or OnFailure",
            ),
            Broken(
                name="UnitedDeployment",
                change=(("spec/topology", {"subsets": [{"name": "zone-a", "replicas": 5}]}),),
                refusal="sum of indicated subset replicas 5 should not be greater than UnitedDeployment replicas",
            ),
            Broken(
                name="spread/fleet/vllm-spread.yaml",
                change=(("spec/subsets/1/name", "reserved"),),
                refusal="duplicated subset name reserved",
            ),
        ),
    ),
    Rules(
        project=_PROJECT["argo-rollouts"],
        component="argo-rollouts-rules",
        broken=(
            Broken(
                name="Rollout",
                change=(("spec/strategy/canary", {"steps": [{"setWeight": 120}]}),),
                refusal="SetWeight needs to be between 0 and 100",
            ),
            Broken(
                name="Rollout",
                change=(("spec/strategy/blueGreen", {"activeService": "model"}),),
                refusal="Multiple Strategies can not be listed",
            ),
        ),
    ),
)
"""In the order of docs/reference/platform.md."""
