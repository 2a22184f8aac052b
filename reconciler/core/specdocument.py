"""What is deployed as EGS's resources have it: the lists of a WorkloadPlacement's spec, written."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.units import format_duration
from reconciler.model.workload import DeploySpec, HelmConfig, HelmFlags, Json


def parts(spec: DeploySpec) -> dict[str, Json]:
    """Write the four lists. They are there even when they are empty: engines' templates read them."""
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
    """Write helmFlags, all of them, an empty timeout for none."""
    return {
        "atomic": given.atomic,
        "cleanupOnFail": given.cleanup_on_fail,
        "createNamespace": given.create_namespace,
        "skipCRDs": given.skip_crds,
        "timeout": "" if given.timeout is None else lasting(given.timeout),
        "wait": given.wait,
    }


def lasting(duration: timedelta) -> str:
    """Write a duration exactly: in whole units, or in seconds with a fraction where it has one."""
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
