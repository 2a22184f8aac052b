"""All that Flux says of one placement, as one report: its stages in their order, and the charts in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from reconciler.core.kubernetes.helmreleases import HelmReleaseRecord
from reconciler.core.kubernetes.kustomizations import KustomizationStage
from reconciler.model.deployed import EngineReport, EngineState
from reconciler.model.ids import ClusterName


def fold(
    cluster: ClusterName, stages: Iterable[KustomizationStage], releases: Iterable[HelmReleaseRecord]
) -> EngineReport | None:
    """Fold the stages and charts of one placement into one report; None where there is no stage.

    A stage begins only when those before it are ready at the same revision. So the first that is not ready tells how
    far the placement is; when all are, the last has the oldest revision.
    """
    every = sorted(stages, key=lambda stage: stage.name)
    if not every:
        return None
    # A stage that goes while others stay is one that a new version has dropped.
    known = [stage for stage in every if not stage.leaving] or every
    for stage in known:
        if stage.state is not EngineState.HEALTHY or stage.leaving:
            charts = sorted((one for one in releases if one.stage == stage.name), key=lambda one: one.name)
            return _report(cluster, known, _told(stage, charts))
    return _report(cluster, known, known[-1])


def _told(stage: KustomizationStage, charts: Sequence[HelmReleaseRecord]) -> KustomizationStage:
    """Let the charts of a stage that is not ready speak for it.

    Helm knows better why a chart is not ready than the stage, which only waits for it. That it has given up counts once
    the stage has applied the chart as it is now.
    """
    if stage.leaving:
        return replace(stage, state=EngineState.PROGRESSING, message=stage.message or "is being deleted")
    if not stage.applied or stage.state is EngineState.FAILED:
        return stage
    for chart in charts:
        if chart.state is EngineState.FAILED:
            failed = replace(stage, state=EngineState.FAILED, message=chart.message, since=chart.since)
            return replace(failed, revision=stage.attempted)
    said = replace(stage, message=next((chart.message for chart in charts if chart.message), stage.message))
    unwell = [chart for chart in charts if chart.state is not EngineState.HEALTHY]
    if stage.done and unwell and all(chart.waiting for chart in unwell):
        # A chart server that is away says nothing of what was installed before; where nothing was, that is late.
        return replace(said, state=EngineState.PENDING, revision=stage.done)
    return said


def _report(cluster: ClusterName, stages: Sequence[KustomizationStage], stage: KustomizationStage) -> EngineReport:
    """Make the report of all stages from the one that tells."""
    digests = {one.digest for one in stages}
    return EngineReport(
        cluster=cluster,
        placement=stage.placement,
        digest=digests.pop() if len(digests) == 1 else "",  # on its way from one version to the next
        revision=stage.revision,
        state=stage.state,
        message=stage.message,
        since=stage.since,
        leaving=all(one.leaving for one in stages),
    )
