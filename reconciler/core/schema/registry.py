"""The registry of kinds: the kinds that this version reads, and their JSON Schemas for editors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from pydantic.json_schema import GenerateJsonSchema

from reconciler.core.schema.egs.gpr import GprFile, GprTemplateFile
from reconciler.core.schema.egs.gpr_binding import BindingFile, WorkspacePolicyFile
from reconciler.core.schema.egs.placement import PlacementFile
from reconciler.core.schema.egs.template import WorkloadTemplateFile
from reconciler.core.schema.fleet import ClusterFile, FleetFile
from reconciler.core.schema.notification import NotificationFile
from reconciler.core.schema.observation import ObservationFile
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.strict_model import API_VERSION, Strict
from reconciler.core.schema.workloadkind import WorkloadKindFile
from reconciler.core.schema.workloadspread import WorkloadSpreadFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.core.workloads.builtin_kinds import kinds_of_group
from reconciler.model.units import format_duration
from reconciler.model.workload import Json
from reconciler.text.findings import shortened
from reconciler.text.spelling import closest, suggested

_GPR = "gpr.kubeslice.io/v1alpha1"
_MODELS: Mapping[str, tuple[tuple[str, ...], type[Strict]]] = {
    "Fleet": ((API_VERSION,), FleetFile),
    "Cluster": ((API_VERSION,), ClusterFile),
    "Workspace": ((API_VERSION,), WorkspaceFile),
    "BurstPolicy": ((API_VERSION,), BurstPolicyFile),
    "Notification": ((API_VERSION,), NotificationFile),
    "WorkloadTemplate": ((_GPR,), WorkloadTemplateFile),
    "WorkloadPlacement": ((_GPR, "worker.kubeslice.io/v1alpha1", "aiops.kubeslice.io/v1alpha1"), PlacementFile),
    "GPUProvisioningRequest": ((_GPR,), GprFile),
    "GPRTemplate": ((_GPR,), GprTemplateFile),
    "GPRTemplateBinding": ((_GPR,), BindingFile),
    "WorkspacePolicy": ((_GPR,), WorkspacePolicyFile),
    "WorkloadKind": ((API_VERSION,), WorkloadKindFile),
    "WorkloadSpread": (("apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"), WorkloadSpreadFile),
    "Observation": ((API_VERSION,), ObservationFile),
}
KINDS = tuple(_MODELS)
"""The kinds that this version reads, each with a model and a published schema."""

_FOREIGN_KINDS = frozenset({
    *kinds_of_group("apps.kruise.io"), "ContainerRecreateRequest", "EphemeralJob", "ImageListPullJob", "ImagePullJob",
    "NodeImage", "NodePodProbe", "PersistentPodState", "PodProbeMarker", "ResourceDistribution", "SidecarSet",
    "GPRAutoEviction", "ClusterGPUAllocation", "Project", "SliceConfig", "SliceQoSConfig", "SliceGateway",
    "SliceNodeAffinity", "SliceResourceQuotaConfig", "SliceRoleTemplate", "SliceRoleBinding", "SliceNSGateway",
    "ServiceExport", "ServiceExportConfig", "ServiceImport", "Slice", "WorkerSliceConfig", "WorkerSliceGateway",
    "WorkerServiceImport", "VpnKeyRotation", "List",
})  # fmt: skip # a list of words, filled line by line
"""Kinds of EGS, KubeSlice and OpenKruise that are left alone."""

OURS = re.compile(r"overspill\.dev|(?:[a-z0-9-]+\.)*kubeslice\.io|apps\.kruise\.io")
"""The API groups whose kinds are all known here."""

_GROUPS = ("overspill.dev", "gpr.kubeslice.io", "apps.kruise.io")
_GENERIC = frozenset({"Cluster", "Workspace", "Fleet", "Notification"})
"""Names that other projects use too: they count as ours only in a group that resembles our own."""


class KindSupport(StrEnum):
    """The treatment of a document."""

    READ = "read"
    FOREIGN = "not ours"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The treatment of a document; if it is wrong, the field at fault and the reason."""

    support: KindSupport
    model: type[Strict] | None = None
    field: str = ""
    message: str = ""
    hint: str = ""


def kind_verdict(api_version: Json, kind: Json) -> Verdict:
    """Return the treatment of a document by its apiVersion and kind."""
    group, _, version = api_version.partition("/") if isinstance(api_version, str) else ("", "", "")
    ours = OURS.fullmatch(group) is not None
    # 1. No kind.
    if not isinstance(kind, str) or not kind:
        return _wrong("kind", "is required", f"one of {', '.join(sorted(KINDS))}") if ours else _FOREIGN
    # 2. One of our kinds without an apiVersion.
    if not isinstance(api_version, str) or not api_version:
        expected = _versions(kind)
        return _wrong("apiVersion", "is required", f"try '{expected[0]}'") if expected else _FOREIGN
    # 3. A kind of another project, unless it is one of ours in a group that resembles our own.
    if not ours:
        guess = closest(group, _GROUPS[:1] if kind in _GENERIC else _GROUPS, any_case=True) if kind in KINDS else ""
        return (
            _wrong("apiVersion", f"unknown group {shortened(group)}", f"try '{_versions(kind)[0]}'")
            if guess
            else _FOREIGN
        )
    # 4. One of our kinds, or a kind of EGS or OpenKruise.
    expected = _versions(kind)
    if not expected:
        if kind in _FOREIGN_KINDS and group != "overspill.dev":
            return _FOREIGN
        guess = suggested(kind, KINDS)
        hint = f"try '{guess}'" if guess else f"one of {', '.join(sorted(KINDS))}"
        return _wrong("kind", f"unknown kind {shortened(kind)}", hint)
    if api_version not in expected:
        if kind == "Cluster" and group != "overspill.dev":
            return _FOREIGN  # KubeSlice registers clusters under the same name
        what = (
            f"{kind} has no version {shortened(version)}"
            if any(expected_version.startswith(f"{group}/") for expected_version in expected)
            else (f"{kind} is not in {shortened(group)}")
        )
        return _wrong("apiVersion", what, f"try '{expected[0]}'")
    return Verdict(support=KindSupport.READ, model=_MODELS[kind][1])


_FOREIGN = Verdict(support=KindSupport.FOREIGN)


def _wrong(field: str, message: str, hint: str) -> Verdict:
    """Refuse a document for its apiVersion or its kind."""
    return Verdict(support=KindSupport.WRONG, field=field, message=message, hint=hint)


def _versions(kind: str) -> tuple[str, ...]:
    """List the known apiVersions of a kind, the preferred one first."""
    return _MODELS[kind][0] if kind in _MODELS else ()


class _UntitledSchema(GenerateJsonSchema):
    """Generates schemas without the titles that Pydantic derives from field names, which help no editor."""

    def encode_default(self, dft: object) -> Json:
        """Write a duration as in files; Pydantic's own form would not match the pattern."""
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)

    def field_title_should_be_set(self, schema: Json) -> bool:  # noqa: ARG002 -- Pydantic's signature
        """Leave out titles."""
        return False


def json_schema(kind: str) -> dict[str, Json]:
    """Describe a kind to editors as JSON Schema of draft 2020-12; raises KeyError for a kind not in `KINDS`."""
    (api_version, *_), model = _MODELS[kind]
    schema = model.model_json_schema(by_alias=True, schema_generator=_UntitledSchema)
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "$id": f"https://{api_version}/{kind}.json",
        **schema,
        "title": kind,
    }
