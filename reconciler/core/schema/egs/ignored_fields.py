"""Fields of EGS and OpenKruise that load without effect, each with a remedy; none is ignored silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.core.schema.egs.gpr import TOP, DetailsFile, GprSpec, GprTemplateSpec, TemplateTermsFile, TermsFile
from reconciler.core.schema.egs.gpr_binding import WorkspacePolicySpec
from reconciler.core.schema.egs.placement import PlacementSpec
from reconciler.core.schema.strict_model import Strict
from reconciler.core.schema.workloadspread import AdaptiveFile
from reconciler.errors import Severity
from reconciler.text.findings import Finding, Loc

_DETAILS = {"run_precheck": "nodes that are not ready are passed over anyway"}
_SHARING = {"gpu_sharing_mode": "a DeviceClass or the shape of an instance says how GPUs are shared"}
_WITHOUT: Mapping[type[Strict], Mapping[str, str]] = {
    PlacementSpec: {"enable_egs": "spec.gprDetails says which GPUs it asks for, and its objects do otherwise"},
    DetailsFile: _DETAILS,
    TemplateTermsFile: _SHARING,
    GprTemplateSpec: {"enable_auto_gpr": "the GPRTemplateBinding of a workspace says it"},
    GprSpec: {
        **_SHARING,
        "request_name": "metadata.name is what it is known by",
        "multi_node": "numberOfGPUNodes says it",
        "early_release": "deleting the file gives the GPUs back",
        "enable_rdma": "labels of a cluster and a policy's requireLabels choose a network",
        "enable_secondary_network": "labels of a cluster and a policy's requireLabels choose a network",
        "enable_time_slicing": "a short exitDuration lets others have a turn",
        "enable_mig": "a DeviceClass or the shape of an instance says how GPUs are shared",
        "enable_dynamic_node_pool": "a Cluster's spec.autoscaling says what an autoscaler may add",
        "workload_selector": "what runs on the GPUs is a WorkloadPlacement's to say",
        "estimated_start_time": "it is worked out anew at each pass",
        "estimated_wait_time": "it is worked out anew at each pass",
    },
    AdaptiveFile: {"disable_simulation_schedule": "nothing simulates scheduling, so that there is nothing to disable"},
    WorkspacePolicySpec: {
        "enable_time_slicing": "maxExitDurationPerGPR lets others have a turn",
        "time_slice_duration": "maxExitDurationPerGPR lets others have a turn",
    },
}


def warn_ignored_fields(part: Strict, loc: Loc) -> Iterator[Finding]:
    """Warn of the fields of a part at `loc` without effect; values that switch a feature off get no warning."""
    without = {
        name: hint for kind, fields in _WITHOUT.items() if isinstance(part, kind) for name, hint in fields.items()
    }
    for name, hint in without.items():
        if name in part.model_fields_set and getattr(part, name) not in (False, ""):
            alias = str(type(part).model_fields[name].alias)
            yield _ignore((*loc, alias), hint)
    if isinstance(part, TermsFile) and part.priority == TOP:
        message = f"is the highest there is, and EGS itself ends at {TOP - 1}"
        hint = f"try {TOP - 1}"
        yield Finding(loc=(*loc, "priority"), message=message, hint=hint, severity=Severity.WARNING)


def warn_ignored_placement_fields(spec: PlacementSpec) -> Iterator[Finding]:
    """Warn of the fields of a placement without effect, its gprDetails included."""
    yield from warn_ignored_fields(spec, ("spec",))
    named = spec.cluster_names or spec.cluster_name or spec.clusters
    if named and not (spec.enable_redistribute or spec.enable_burst):
        hint = "clusterNames say where it may go, now and later"
        yield _ignore(("spec", "enableRedistribute"), hint)
    if spec.gpr_details is not None:
        yield from warn_ignored_fields(spec.gpr_details, ("spec", "gprDetails"))


def _ignore(loc: Loc, hint: str) -> Finding:
    return Finding(loc=loc, message="has no effect here", hint=hint, severity=Severity.WARNING)
