"""The kinds that the projects of a GPU platform publish: CustomResourceDefinitions out of their released modules.

They say which fields an object may have and must have, so an API server with them judges objects as one with the
controllers would, but for what webhooks and controllers refuse. Nothing of them is copied here: `tools/*/go.mod` pins
each module, and Go downloads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from reconciler.model.kubernetes.workload_kind import EACH
from reconciler.model.kubernetes.workload_kind import Path as FieldPath
from tests.e2e.api_server import Json, Refused
from tests.e2e.components import Missing, pinned_module, sources
from tests.e2e.control_plane import Cluster

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAMED = "x-kubernetes-group-version-kind"
_OPEN = "x-kubernetes-preserve-unknown-fields"
ANYTHING: Json = {_OPEN: True}
"""The schema of what a schema leaves open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project: the directory in `tools/` whose go.mod pins its module, and where the module has its kinds."""

    name: str
    tool: str
    module: str
    files: tuple[str, ...] = ("config/crd/bases/*.yaml",)
    """Patterns of the files with its CustomResourceDefinitions; other documents in them are left out."""
    objects: bool = True
    """Whether an object of its kinds is written, or read from a sample, by Overspill."""

    @property
    def pinned(self) -> str:
        """The module as ``path@version``."""
        return pinned_module(self.tool, self.module)


PROJECTS = (
    Project(
        name="Training Operator",
        tool="training-operator",
        module="github.com/kubeflow/training-operator",
        files=("manifests/base/crds/kubeflow.org_*.yaml",),
    ),
    Project(
        name="MPI Operator",
        tool="mpi-operator",
        module="github.com/kubeflow/mpi-operator",
        files=("manifests/base/kubeflow.org_mpijobs.yaml",),
    ),
    Project(
        name="Kubeflow Trainer",
        tool="trainer",
        module="github.com/kubeflow/trainer/v2",
        files=("manifests/base/crds/trainer.kubeflow.org_*.yaml",),
    ),
    Project(name="KubeRay", tool="kuberay", module="github.com/ray-project/kuberay/ray-operator"),
    Project(
        name="KServe",
        tool="kserve",
        module="github.com/kserve/kserve",
        files=("config/crd/full/**/serving.kserve.io_*.yaml",),
    ),
    Project(
        name="Grove",
        tool="grove",
        module="github.com/NVIDIA/grove/operator/api",
        files=("core/v1alpha1/crds/grove.io_*.yaml",),
    ),
    Project(name="LeaderWorkerSet", tool="lws", module="sigs.k8s.io/lws"),
    Project(name="JobSet", tool="jobset", module="sigs.k8s.io/jobset", files=("config/components/crd/bases/*.yaml",)),
    Project(
        name="Kueue",
        tool="kueue",
        module="sigs.k8s.io/kueue",
        files=("config/components/crd/bases/*.yaml",),
        objects=False,
    ),
    Project(name="KEDA", tool="keda", module="github.com/kedacore/keda/v2", objects=False),
    Project(
        name="Karpenter",
        tool="karpenter",
        module="sigs.k8s.io/karpenter",
        files=("pkg/apis/crds/*.yaml",),
        objects=False,
    ),
    Project(name="OpenKruise", tool="kruise", module="github.com/openkruise/kruise"),
    Project(
        name="Argo Rollouts",
        tool="argo-rollouts",
        module="github.com/argoproj/argo-rollouts",
        files=("manifests/crds/*.yaml",),
    ),
    Project(
        name="Volcano",
        tool="volcano",
        module="volcano.sh/volcano",
        files=("config/crd/volcano/bases/*.yaml",),
    ),
    Project(
        name="multicluster-services API",
        tool="mcs-api",
        module="sigs.k8s.io/mcs-api",
        files=("config/crd/*.yaml",),
    ),
)
"""In the order of docs/reference/platform.md."""


@cache
def released(project: Project) -> tuple[Json, ...] | Missing:
    """Return the CustomResourceDefinitions of a project as released."""
    directory = sources(project.pinned)
    if isinstance(directory, Missing):
        return directory
    paths = sorted(path for pattern in project.files for path in directory.glob(pattern))
    assert paths, f"{project.pinned} has nothing at {', '.join(project.files)}"
    return tuple(found for path in paths for found in _definitions(path))


def _definitions(path: Path) -> Iterator[Json]:
    for document in yaml.load_all(path.read_text(), yaml.CSafeLoader):
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
            yield document


def versions(definition: Json) -> dict[str, Json]:
    """Return the schema of each version that is served, by its name."""
    served = (version for version in definition["spec"]["versions"] if version["served"])
    return {version["name"]: version["schema"]["openAPIV3Schema"] for version in served}


def kind_name(definition: Json) -> str:
    """Write the kind of a CustomResourceDefinition as ``group/Kind``."""
    return f"{definition['spec']['group']}/{definition['spec']['names']['kind']}"


def below(schema: Json, field: FieldPath, definitions: Mapping[str, Json] | None = None) -> Json:
    """Return the schema at a path: empty for a path that it does not name, `ANYTHING` where it takes whatever comes.

    A ``*`` stands for the items of a list or of a mapping. `definitions` are those that references name, as in the
    OpenAPI of an API server.
    """
    schema = _resolved(schema, definitions or {})
    if not field:
        return schema
    part, rest = field[0], field[1:]
    if part == EACH:
        found = schema.get("items") or schema.get("additionalProperties")
    else:
        found = schema.get("properties", {}).get(part, schema.get("additionalProperties"))
        if found is None and schema.get(_OPEN):
            return ANYTHING
    return below(found, rest, definitions) if isinstance(found, dict) else {}


def _resolved(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """Follow a reference, which an API server writes alone or as the one item of ``allOf``."""
    (outline,) = schema.get("allOf", (schema,))
    reference = outline.get("$ref")
    return definitions[reference.rpartition("/")[2]] if reference else outline


class Judge:
    """An API server that gets published kinds, asked what it would say of an object."""

    def __init__(self, cluster: Cluster) -> None:
        """Take a cluster that serves none of the kinds yet."""
        self._cluster = cluster

    def serve(self, definition: Json) -> None:
        """Serve a kind, in place of another project's of the same name: two publish an MPIJob each."""
        name, plural = definition["metadata"]["name"], definition["spec"]["names"]["plural"]
        if self._serves(name):
            self._cluster.call("DELETE", f"{_DEFINITIONS}/{name}")
            self._cluster.until(lambda: not self._serves(name), f"{name} does not go")
        self._cluster.create(_DEFINITIONS, definition)
        groups = [f"{definition['spec']['group']}/{version}" for version in versions(definition)]
        self._cluster.until(
            lambda: all(plural in self._cluster.served(group) for group in groups), f"{name} is not served"
        )

    def schema(self, group: str, version: str, kind: str) -> tuple[Json, Mapping[str, Json]]:
        """Return the schema of a kind of Kubernetes, and the definitions that its references name."""
        root = f"apis/{group}/{version}" if group else f"api/{version}"
        definitions: Mapping[str, Json] = self._cluster.call("GET", f"/openapi/v3/{root}")["components"]["schemas"]
        name = {"group": group, "version": version, "kind": kind}
        (found,) = (each for each in definitions.values() if name in each.get(_NAMED, ()))
        return found, definitions

    def refusal(self, manifest: Json) -> str:
        """Return why the API server refuses to create an object; empty if it would. An unknown field is refused."""
        try:
            self.completed(manifest)
        except Refused as refused:
            return str(refused)
        return ""

    def completed(self, manifest: Json) -> Json:
        """Return an object as the API server would create it, with the defaults of its kind."""
        return self._cluster.create(f"{self._path(manifest)}?dryRun=All&fieldValidation=Strict", manifest)

    def _serves(self, name: str) -> bool:
        try:
            return bool(self._cluster.call("GET", f"{_DEFINITIONS}/{name}"))
        except Refused as refused:
            if refused.status != 404:
                raise
            return False

    def _path(self, manifest: Json) -> str:
        group = manifest["apiVersion"]
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        resources = self._cluster.call("GET", root)["resources"]
        (resource,) = (each for each in resources if each["kind"] == manifest["kind"] and "/" not in each["name"])
        if not resource["namespaced"]:
            return f"{root}/{resource['name']}"
        namespace = manifest["metadata"]["namespace"]
        self._cluster.ensure_namespace(namespace)
        return f"{root}/namespaces/{namespace}/{resource['name']}"
