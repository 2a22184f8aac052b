"""Requests in EGS's form: as a resource for the ledger, and as answers of its REST interface.

Both forms read back as the same request, by `request.placement_draft` and by the bodies of the API.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from reconciler.core.schema.egs import request as requestdraft
from reconciler.core.schema.egs.deploy import ManifestResourceFile
from reconciler.core.schema.egs.gpr import GprFile
from reconciler.core.schema.egs.placement import PlacementFile
from reconciler.core.schema.egs.request import TEMPLATE
from reconciler.core.schema.errors import validation_findings
from reconciler.errors import Severity
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.request import Request
from reconciler.model.units import format_duration
from reconciler.model.workload import DeploySpec, HelmConfig, HelmFlags, Json, ManifestResource
from reconciler.text.findings import Finding


def parts(spec: DeploySpec) -> dict[str, Json]:
    """Write the four lists. Empty lists are written too: engines' templates read them."""
    return {
        "helmConfig": [_chart(chart) for chart in spec.helm],
        "manifestResources": [{"name": item.name, "manifest": item.manifest} for item in spec.manifests],
        "cmdExec": commands(spec),
        "steps": steps(spec),
    }


def commands(spec: DeploySpec) -> list[Json]:
    """Write the command lines."""
    return [{"name": item.name, "cmd": item.cmd} for item in spec.commands]


def steps(spec: DeploySpec) -> list[Json]:
    """Write the steps."""
    return [{"name": step.name, "type": step.type.value} for step in spec.steps]


def flags(given: HelmFlags) -> dict[str, Json]:
    """Write all helmFlags; no timeout is an empty text."""
    return {
        "atomic": given.atomic,
        "cleanupOnFail": given.cleanup_on_fail,
        "createNamespace": given.create_namespace,
        "skipCRDs": given.skip_crds,
        "timeout": "" if given.timeout is None else write_duration(given.timeout),
        "wait": given.wait,
    }


def write_duration(duration: timedelta) -> str:
    """Write a duration exactly: in whole units, or in seconds with a fraction."""
    if not duration.microseconds:
        return format_duration(duration)
    seconds = duration.days * 86400 + duration.seconds
    return f"{seconds}.{duration.microseconds:06}".rstrip("0") + "s"


def _chart(chart: HelmConfig) -> Json:
    document: dict[str, Json] = {
        "name": chart.name,
        "chart": chart.chart,
        "repoName": chart.repo_name,
        "repoURL": chart.repo_url,
        "version": chart.version,
        "releaseName": chart.release_name,
        "releaseNamespace": chart.release_namespace,
    }
    if chart.secret_ref:
        document["secretRef"] = {"name": chart.secret_ref}
    document["helmFlags"] = flags(chart.flags)
    document["values"] = chart.values
    return document


_API_VERSION = "gpr.kubeslice.io/v1alpha1"
Document = dict[str, Any]


def document(request: Request) -> Document:
    """Write a request as a WorkloadPlacement, or a reservation as a GPUProvisioningRequest, without status."""
    metadata: Document = {"name": request.name}
    if request.namespace:
        metadata["namespace"] = request.namespace
    if request.template:
        metadata["annotations"] = {TEMPLATE: request.template}
    return {
        "apiVersion": _API_VERSION,
        "kind": "GPUProvisioningRequest" if request.reserves else "WorkloadPlacement",
        "metadata": metadata,
        "spec": _gpr(request) if request.reserves else _placement(request),
    }


def read_request(value: Json) -> Request | tuple[Finding, ...]:
    """Read the result of `document`, whatever status is beside it; return findings if it is broken.

    The request is not admitted again: it was admitted when it was written.
    """
    reserves = isinstance(value, dict) and value.get("kind") == "GPUProvisioningRequest"
    model = GprFile if reserves else PlacementFile
    try:
        file = model.model_validate(value)
    except ValidationError as error:
        return validation_findings(error, model)
    draft, findings = (
        requestdraft.reservation_draft(file) if isinstance(file, GprFile) else requestdraft.placement_draft(file)
    )
    wrong = tuple(finding for finding in findings if finding.severity is Severity.ERROR)
    if draft.workspace is None:
        wrong = (*wrong, Finding(loc=("spec", "workspaceName"), message="is required"))
    return wrong if wrong or draft.workspace is None else draft.request(draft.workspace).settled


def rest_document(request: Request) -> Document:
    """Write a placement as EGS's REST interface answers, without status and times.

    Fields that EGS's own answers lack are written only if they have a value.
    """
    spec = request.spec
    body: Document = {"name": request.name, "workspaceName": request.workspace, "clusters": list(request.clusters)}
    body |= _choice(request)
    if spec.burst_duration is not None:
        body["burstDuration"] = write_duration(spec.burst_duration)
    body["deletionPolicy"] = spec.deletion_policy.value
    if spec.service_account:
        body["serviceAccountName"] = spec.service_account
    if request.template:
        body["workloadTemplateName"] = request.template
    if request.ask is not None or request.terms != GprTerms():
        body["gprDetails"] = _terms(request.ask, request.terms)
    body["helmConfigs"] = [_rest_chart(chart) for chart in spec.helm]
    body["manifestResources"] = [_manifest(resource) for resource in spec.manifests]
    body["cmdExec"] = commands(spec)
    body["steps"] = steps(spec)
    return body


def _placement(request: Request) -> Document:
    spec = request.spec
    written: Document = {"workspaceName": request.workspace}
    if request.clusters:
        written["clusterNames"] = list(request.clusters)
    written |= _choice(request)
    if spec.burst_duration is not None:
        written["burstDuration"] = write_duration(spec.burst_duration)
    written["deletionPolicy"] = spec.deletion_policy.value
    if spec.service_account:
        written["serviceAccountName"] = spec.service_account
    return {**written, "gprDetails": _terms(request.ask, request.terms), **parts(spec)}


def _choice(request: Request) -> Document:
    """Write the number of clusters of a request, unless it uses all that it names."""
    written: Document = {}
    if not request.clusters:
        written["autoSelectCluster"] = True
    if request.placements is not None and (request.clusters or request.placements > 1):
        written["numPlacements"] = request.placements
    if not request.redistributes:
        written["enableRedistribute"] = False
    return written


def _gpr(request: Request) -> Document:
    written: Document = {"sliceName": request.workspace}
    if request.clusters:
        written["preferredClusters"] = list(request.clusters)
    else:
        written["enableAutoClusterSelection"] = True
    return written | _terms(request.ask, request.terms)


def _terms(ask: GpuAsk | None, terms: GprTerms) -> Document:
    written: Document = {}
    if ask is not None:
        written |= {"numberOfGPUs": ask.gpus, "numberOfGPUNodes": ask.nodes}
        if ask.memory:
            written["memoryPerGpu"] = ask.memory
        if ask.shape:
            written |= {"gpuShape": ask.shape, "instanceType": ask.instance_type}
        else:
            written["enableAutoGpuSelection"] = True
    written["priority"] = terms.priority
    for name, duration in (("exitDuration", terms.exit_duration), ("idleTimeOutDuration", terms.idle)):
        if duration is not None:
            written[name] = write_duration(duration)
    if terms.idle is not None:
        written["enforceIdleTimeOut"] = terms.enforce_idle
    written |= {"enableEviction": terms.evictable, "requeueOnFailure": terms.requeue}
    return written | ({"dedicatedNodes": True} if terms.dedicated else {})


def _rest_chart(chart: HelmConfig) -> Document:
    """Write a chart as the REST interface does: without a name that equals its release (docs/reference/egs.md, R5)."""
    written: Document = {} if chart.name == chart.release_name else {"name": chart.name}
    written |= {
        "chart": chart.chart,
        "releaseName": chart.release_name,
        "releaseNamespace": chart.release_namespace,
        "repoName": chart.repo_name,
        "repoURL": chart.repo_url,
    }
    if chart.version:
        written["version"] = chart.version
    if chart.secret_ref:
        written["secretRef"] = chart.secret_ref
    if chart.flags != HelmFlags():
        written["helmFlags"] = flags(chart.flags)
    return {**written, "values": chart.values}


def _manifest(resource: ManifestResource) -> Document:
    """Write an object flattened (docs/reference/egs.md, R14), or wrapped if flattening would lose fields."""
    manifest = resource.manifest
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict):
        rest_of_it = {name: value for name, value in manifest.items() if name != "metadata"}
        flat = {"name": resource.name, **metadata, **rest_of_it}
        if _reads_as(flat, resource):
            return flat
    return {"name": resource.name, "manifest": manifest}


def _reads_as(flat: Document, resource: ManifestResource) -> bool:
    """Return whether the flattened form reads back as the same object."""
    try:
        read = ManifestResourceFile.model_validate(flat)
    except ValidationError:
        return False
    return (read.name, read.manifest) == (resource.name, resource.manifest)
