"""The chart of a Helm release that `lend` writes a template of: read from a cluster, or from files that helm prints."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click
from pydantic import TypeAdapter, ValidationError

from reconciler.adapters.helm.output import sourced_objects
from reconciler.app.commands import live_release
from reconciler.cli import printing
from reconciler.core.onboarding.helm_release import (
    ChartObject,
    HelmRelease,
    chart_of,
    choose_workload,
    in_namespace,
    replica_value,
    user_values,
)
from reconciler.core.onboarding.lend import LiveWorkload, kind_and_name
from reconciler.core.onboarding.release_template import ReleasedChart
from reconciler.core.schema import yaml
from reconciler.core.schema.urls import ChartAddress
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired
from reconciler.settings import Settings

_CHART_REPO = "--chart-repo"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAnswers:
    """What a person says of the chart of a release."""

    chart_repo: str | None = None
    """Where engines fetch it from."""
    chart: str | None = None
    chart_version: str | None = None
    values: Path | None = None
    """A file with the values, in place of those that Helm keeps."""
    replicas_value: str | None = None
    """The path of the value that sets the replicas."""
    counted: str | None = None
    """The workload that bursts, as kubectl takes it."""


def refuse_answers(answers: ChartAnswers) -> None:
    """Raise a usage error for an answer about a chart where no release is lent."""
    for name in ChartAnswers.__dataclass_fields__:
        if getattr(answers, name) is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} goes with release/NAME")


def live_chart(
    settings: Settings,
    desired: Desired,
    wanted: tuple[ClusterName, str, str],
    answers: ChartAnswers,
    manifests: Path | None,
) -> LiveWorkload:
    """Return the workload of a release that bursts, with the chart; `wanted` is its cluster, namespace and name.

    What lacks is asked on a terminal; without one it is a usage error.
    """
    primary, namespace, name = wanted
    if manifests is not None:
        release = _from_files(manifests, (namespace, name), answers)
    else:
        release = live_release(settings, desired, primary, (namespace, name))
        printing.say(f"Read {release.read_from}: the chart, values and objects of {release.title}.")
        release = _with_answers(release, answers)
    counted = None if answers.counted is None else kind_and_name(answers.counted, desired.kinds)
    workload = choose_workload(release, counted, desired.kinds)
    value = replica_value(release, workload, desired.kinds, answers.replicas_value)
    chart = ReleasedChart(
        release=release,
        repo_url=_chart_repo(release, answers.chart_repo),
        workload=workload,
        value=value,
        foreign_values="" if answers.values is None else str(answers.values),
    )
    placed = in_namespace(release, workload)
    source = "" if manifests is None else str(manifests)
    return LiveWorkload(primary=primary, manifest=placed.manifest, source=source, chart=chart)


def _from_files(manifests: Path, wanted: tuple[str, str], answers: ChartAnswers) -> HelmRelease:
    """Return a release from what helm prints of it."""
    namespace, name = wanted
    shown = "standard input" if str(manifests) == "-" else str(manifests)
    try:
        text = sys.stdin.buffer.read() if str(manifests) == "-" else manifests.read_bytes()
        objects = [
            ChartObject(manifest=manifest, source=source) for source, manifest in sourced_objects(text.decode(), shown)
        ]
    except OSError as error:
        raise InvalidInput(f"reading {shown}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"reading {shown}: it is no text in UTF-8") from error
    chart, version = chart_of(objects)
    chart, version = answers.chart or chart, answers.chart_version or version
    for flag, given in (("--chart", chart), ("--chart-version", version)):
        if not given:
            raise click.UsageError(f"say {flag}: no label helm.sh/chart of {shown} tells it (`helm list` does)")
    release = HelmRelease(
        name=name, namespace=namespace, chart=chart, version=version, objects=tuple(objects), read_from=shown
    )
    return _with_answers(release, answers)


def _with_answers(release: HelmRelease, answers: ChartAnswers) -> HelmRelease:
    """Return a release with what a person knows better than Helm."""
    values = release.values
    if answers.values is not None:
        try:
            documents = yaml.parse(answers.values.read_bytes(), str(answers.values))
        except OSError as error:
            raise InvalidInput(f"reading {answers.values}: {error.strerror or error}") from error
        values = user_values(documents[0].value if documents else None)
    return replace(
        release,
        chart=answers.chart or release.chart,
        version=answers.chart_version or release.version,
        values=values,
    )


def _chart_repo(release: HelmRelease, given: str | None) -> str:
    """Return the address of the chart's repository, without the chart: named, or asked for on a terminal."""
    if given is None:
        home = f"; its page is {release.home}" if release.home else ""
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"say where engines fetch the chart {release.chart} {release.version} from, by {_CHART_REPO} URL: Helm"
                f" does not keep it (`helm repo list` and `helm search repo {release.chart}` tell{home})"
            )
        given = str(
            click.prompt(f"Repository of the chart {release.chart} {release.version} (https:// or oci://{home})")
        )
    try:
        address = TypeAdapter(ChartAddress).validate_python(given)
    except ValidationError as error:
        raise click.UsageError(f"{_CHART_REPO}: {error.errors()[0]['msg']}") from error
    if not address or "{{" in address:
        raise click.UsageError(f"{_CHART_REPO}: it is no address (try https://charts.example.com/repository)")
    return address.rstrip("/").removesuffix(f"/{release.chart}") if address.startswith("oci://") else address
