"""Requests and limits of containers, as API servers take them: names of resources, whole devices, limits in reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from reconciler.core.expressions.dialect import has_expression
from reconciler.model.units import ONE, parse_quantity
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import closest, nearest

_STANDARD = ("cpu", "ephemeral-storage", "memory")
_VENDORS = frozenset({
    "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice",
    "cambricon.com/mlu", "google.com/tpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi",
    "huawei.com/Ascend310", "huawei.com/Ascend310P", "huawei.com/Ascend910", "nvidia.com/gpu", "nvidia.com/gpu.shared",
    "nvidia.com/gpucores", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "qualcomm.com/qaic",
    "vpc.amazonaws.com/efa",
})  # fmt: skip # a list of words, filled line by line
"""Resources of the device plugins of GPU and network vendors."""

_SHORT = ("gpu", "gpus")
"""Names that people write for the resource of a vendor."""

_HUGE_PAGES = "hugepages-"
"""How the names of huge pages begin, before the size of one."""

_CLOSE = 0.92
"""How alike a misspelt name is: one letter of ``nvidia.com/gpu``. Operators name resources of their own as freely."""


def check_resource_names(pod: Mapping[str, Json], loc: Loc, declared: AbstractSet[str]) -> Iterator[Finding]:
    """Check the resources of a pod's containers; `declared` are names that clusters are said to have."""
    for part in ("initContainers", "containers"):
        containers = pod.get(part)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            resources = container.get("resources") if isinstance(container, dict) else None
            if isinstance(resources, dict):
                yield from _check_resources(resources, (*loc, part, index, "resources"), declared)


def _check_resources(resources: Mapping[str, Json], loc: Loc, declared: AbstractSet[str]) -> Iterator[Finding]:
    requests, limits = ({} if not isinstance(part := resources.get(name), dict) else part for name in _PARTS)
    for field, amounts in zip(_PARTS, (requests, limits), strict=True):
        for name in amounts:
            hint = _misspelt(name, declared)
            if hint is None:
                continue
            what = (
                "is no resource of Kubernetes" if "/" not in name else "is no resource that a known device plugin has"
            )
            yield Finding(loc=(*loc, field, name), message=f"{shortened(name)} {what}", hint=hint)
        for name, amount in amounts.items():
            if _is_extended(name) and (_read(amount) or 0) % ONE:
                message = f"devices are whole, and {shortened(str(amount))} is no whole number of them"
                yield Finding(loc=(*loc, field, name), message=message, hint="try 1")
    # An expression may be all the requests or limits, or the name of one.
    parts = [resources.get(name) for name in _PARTS]
    is_open = has_expression(
        "".join(text for part in parts for text in (part if isinstance(part, dict) else [str(part)]))
    )
    for name, amount in requests.items():
        limit = limits.get(name)
        wanted, most = _read(amount), _read(limit)
        if not _is_extended(name) and wanted is not None and most is not None and wanted > most:
            message = f"the request of {shortened(str(amount))} is more than the limit of {shortened(str(limit))}"
            yield Finding(loc=(*loc, "requests", name), message=message, hint="raise the limit, or request less")
        unlike = (limit is not None or not is_open) and wanted != most and not has_expression(f"{amount}{limit}")
        # API servers take a request for devices and huge pages only beside the same limit: none is overcommitted.
        if unlike and (_is_extended(name) or name.startswith(_HUGE_PAGES)):
            what = "huge pages" if name.startswith(_HUGE_PAGES) else "devices"
            hint = f"set limits: {shortened(name)} to the same number, or leave the request out"
            yield Finding(
                loc=(*loc, "requests", name), message=f"{what} are requested only up to their limit", hint=hint
            )
    if not is_open:
        yield from _check_huge_pages(requests, limits, loc)


_PARTS = ("requests", "limits")


def _check_huge_pages(requests: Mapping[str, Json], limits: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Check that huge pages are whole, and stand beside cpu or memory."""
    pages = {name: amount for name, amount in limits.items() if name.startswith(_HUGE_PAGES)}
    for name, amount in pages.items():
        size, wanted = _read(name.removeprefix(_HUGE_PAGES)), _read(amount)
        if size and wanted is not None and wanted % size:
            message = f"{shortened(str(amount))} is no whole number of pages of {name.removeprefix(_HUGE_PAGES)}"
            yield Finding(loc=(*loc, "limits", name), message=message)
    if pages and not {"cpu", "memory"} & {*requests, *limits}:
        message = "huge pages need cpu or memory beside them"
        yield Finding(loc=(*loc, "limits", next(iter(pages))), message=message, hint="request memory too")


def _read(amount: Json) -> int | None:
    """Return an amount in nano units; None without one, and for what an expression decides or another check refuses."""
    if not isinstance(amount, str | int | float) or isinstance(amount, bool):
        return None
    try:
        return parse_quantity(str(amount))
    except ValueError:
        return None


def _misspelt(name: str, declared: AbstractSet[str]) -> str | None:
    """Return the way out for a name that no cluster can have; None for any other."""
    if has_expression(name) or name in declared or name in _VENDORS:
        return None
    if "/" not in name:
        if name in _STANDARD or name.startswith(_HUGE_PAGES):
            return None
        return "try 'nvidia.com/gpu'" if name in _SHORT else nearest(name, _STANDARD)
    close = closest(name, _VENDORS | declared, cutoff=_CLOSE)
    return f"try '{close}'" if close else None


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not has_expression(name)
