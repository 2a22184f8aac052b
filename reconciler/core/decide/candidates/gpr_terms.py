"""The terms and the priority of a workload's GPUs: the most specific source that sets them wins.

EGS says this in gprDetails, in GPRTemplates and in the GPRTemplateBinding of a workspace (docs/reference/egs.md,
"GPRTemplate, GPRTemplateBinding, WorkspacePolicy" and R24: where they disagree the binding decides whether workloads
get GPRs by themselves).
"""

from __future__ import annotations

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet import auto_gpr
from reconciler.model.gpr import GprTemplate, GprTerms, GpuAsk
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId
from reconciler.model.request import Request

BANDS = ((100, "low"), (200, "medium"), (300, "high"))
"""The highest priority of each band; priorities above the last are high."""


def terms(workload: WorkloadId, cluster: ClusterName, inputs: PassInput) -> GprTerms:
    """Return the terms under which a workload has, or would have, GPUs of a cluster.

    Those of the request itself where it says how many GPUs it needs; else of the GPRTemplate for this cluster; else
    EGS's defaults with the priority of the workload's BurstPolicy. A request that says nothing has its own defaults.
    """
    replaceable = stated_gpus(workload, inputs) is None
    template = gpr_template(workload, cluster, inputs) if replaceable else None
    return _own_terms(workload, inputs) if template is None else template.terms


def priority(workload: WorkloadId, inputs: PassInput) -> int:
    """Return the priority of a workload before its cluster is chosen: the highest of the clusters that it may use.

    Higher goes first.
    """
    if not has_gpr_templates(workload, inputs) or stated_gpus(workload, inputs) is not None:
        return _own_terms(workload, inputs).priority
    return max(
        (terms(workload, candidate.cluster, inputs).priority for candidate in inputs.reach.order(workload)), default=0
    )


def gpr_template(workload: WorkloadId, cluster: ClusterName, inputs: PassInput) -> GprTemplate | None:
    """Find the GPRTemplate of a workload on a cluster, by those that its template names and its workspace's binding."""
    return auto_gpr.gpr_template(_template_names(workload, inputs), workload.workspace, cluster, inputs.desired)


def stated_gpus(workload: WorkloadId, inputs: PassInput) -> GpuAsk | None:
    """Return the GPUs that a request states itself, so that no GPRTemplate does; None where its objects say them."""
    request = request_of(workload, inputs)
    return None if request is None else request.ask


def request_of(workload: WorkloadId, inputs: PassInput) -> Request | None:
    """Return the request of this id: as the ledger records it, else as its file has it; None for a burst."""
    record = inputs.requests.get(workload)
    return record.request if record else inputs.desired.requests.get(workload)


def priority_band(priority: int) -> str:
    """Name the band of a priority: low, medium or high."""
    return next((name for last, name in BANDS if priority <= last), BANDS[-1][1])


def _own_terms(workload: WorkloadId, inputs: PassInput) -> GprTerms:
    """Return the terms of a workload where no GPRTemplate sets them."""
    request, policy = request_of(workload, inputs), inputs.desired.policies.get(workload)
    if request is not None:
        return request.terms
    return GprTerms(priority=policy.priority if policy else 0)


def _template_names(workload: WorkloadId, inputs: PassInput) -> tuple[str, ...]:
    """List the GPRTemplates that a workload's template names; a request has those of the template it was made from."""
    request = request_of(workload, inputs)
    of = workload if request is None else WorkloadId(workload.workspace, TemplateName(request.template))
    template = inputs.desired.templates.get(of)
    return template.gpr_templates if template else ()


def has_gpr_templates(workload: WorkloadId, inputs: PassInput) -> bool:
    """Tell whether any GPRTemplate can hold for a workload, so that most workloads cost no look at clusters."""
    binding = inputs.desired.bindings.get(workload.workspace)
    return bool(binding and binding.auto) or bool(_template_names(workload, inputs))
