"""Reasons of several engines to refuse a spec, each one sentence with its way out."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.core.safety import commands
from reconciler.model.policy import Workspace
from reconciler.model.workload import DeploySpec, HelmConfig, StepType
from reconciler.text.findings import shortened


def unique_charts(charts: Iterable[HelmConfig]) -> tuple[HelmConfig, ...]:
    """Drop repetitions, keeping the order."""
    return tuple({chart.name: chart for chart in charts}.values())


def unreachable(chart: HelmConfig, who: str) -> str:
    """Say why `who` could not find a chart; empty when it could."""
    name = repr(shortened(chart.name))
    if not chart.repo_url:
        return f"chart {name} has no repoURL, so {who} cannot find it (set repoURL)"
    alias, slash, _ = plain_name(chart).rpartition("/")
    if slash and not chart.repo_url.startswith("oci://"):
        hint = f"set repoName: {shortened(alias)}, or leave {shortened(alias + slash)!r} out"
        return f"chart {name} is called {shortened(chart.chart)!r}, and no repository has a chart of that name ({hint})"
    return ""


def plain_name(chart: HelmConfig) -> str:
    """Return the chart's name without the alias of its repository."""
    return chart.chart.removeprefix(f"{chart.repo_name}/")


def chart_refusals(charts: Iterable[HelmConfig], why: str, *, helm: bool) -> list[str]:
    """Say why charts cannot be rendered here; `why` says why they have to be."""
    reasons: list[str] = []
    for chart in unique_charts(charts):
        name = repr(shortened(chart.name))
        if not chart.repo_url:
            reasons.append(f"chart {name} has no repoURL, so helm cannot find it (set repoURL)")
        if chart.secret_ref:
            reasons.append(
                f"chart {name} needs the credentials of Secret {shortened(chart.secret_ref)!r}, and {why}: Overspill "
                "would have to render it and reads no Secrets (mirror the chart to a repository it can read)"
            )
    if reasons or helm:
        return reasons
    names = ", ".join(repr(shortened(chart.name)) for chart in unique_charts(charts))
    return (
        [f"{why}, so Overspill has to render {names} and helm is not installed here (install helm 3)"] if names else []
    )


def command_refusals(spec: DeploySpec, workspace: Workspace) -> list[str]:
    """Say which commands cannot be carried out in this workspace, and why."""
    reasons = []
    for name, outcome in command_steps(spec):
        if refusal := commands.refuse_command(outcome, workspace.command_jobs, spec.service_account):
            hint = f" ({refusal.hint})" if refusal.hint else ""
            reasons.append(f"command {shortened(name)!r}: {refusal.message}{hint}")
    return reasons


def command_steps(spec: DeploySpec) -> list[tuple[str, commands.CheckedCommand]]:
    """Return the name and the outcome of each command step, in order."""
    lines = {command.name: command.cmd for command in spec.commands}
    return [
        (step.name, commands.read_command(lines[step.name])) for step in spec.steps if step.type is StepType.COMMAND
    ]
