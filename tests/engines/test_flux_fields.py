"""Flux's objects hold fields of Flux's own definitions and no others.

The API server refuses an object with a field that its definition does not know, and with it a whole stage. The fields
below are those that we use, as the definitions of source 1.9, kustomize 1.9, helm 1.6 and notification 1.9 have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml

from reconciler.core.engines.flux.bootstrap import flux
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Cluster, Desired, EngineName, Fleet
from reconciler.model.workload import DeletionPolicy, HelmFlags
from tests.builders.deploy_specs import CONFIG, JOBS, PLACEMENT, WEB, WORKSPACE, chart, files, spec

WORKER_2 = ClusterName("worker-2")
JOBFUL = replace(WORKSPACE, command_jobs=JOBS)
SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "vllm-demo"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}

FIELDS = {
    "source.toolkit.fluxcd.io/v1 GitRepository": """
        interval url ref ref.branch secretRef secretRef.name sparseCheckout
    """,
    "source.toolkit.fluxcd.io/v1 HelmRepository": "interval url secretRef secretRef.name",
    "source.toolkit.fluxcd.io/v1 OCIRepository": """
        interval url ref ref.tag ref.semver layerSelector layerSelector.mediaType layerSelector.operation
        secretRef secretRef.name
    """,
    "kustomize.toolkit.fluxcd.io/v1 Kustomization": """
        interval retryInterval timeout path prune deletionPolicy wait serviceAccountName targetNamespace
        sourceRef sourceRef.kind sourceRef.name dependsOn dependsOn.name ignore ignore.paths ignore.target
        ignore.target.group ignore.target.kind ignore.target.name ignore.target.namespace
        patches patches.target patches.target.group patches.target.kind patches.patch
    """,
    "helm.toolkit.fluxcd.io/v2 HelmRelease": """
        interval timeout releaseName targetNamespace storageNamespace serviceAccountName
        chart chart.spec chart.spec.chart chart.spec.version chart.spec.sourceRef chart.spec.sourceRef.kind
        chart.spec.sourceRef.name chartRef chartRef.kind chartRef.name
        install install.createNamespace install.crds install.disableWait install.remediation
        install.remediation.retries install.remediation.remediateLastFailure
        upgrade upgrade.cleanupOnFail upgrade.disableWait upgrade.remediation upgrade.remediation.retries
        upgrade.remediation.remediateLastFailure upgrade.remediation.strategy
        uninstall uninstall.deletionPropagation
        driftDetection driftDetection.mode driftDetection.ignore driftDetection.ignore.paths
        driftDetection.ignore.target driftDetection.ignore.target.kind postRenderers postRenderers.kustomize
        postRenderers.kustomize.patches postRenderers.kustomize.patches.target
        postRenderers.kustomize.patches.target.group postRenderers.kustomize.patches.target.kind
        postRenderers.kustomize.patches.patch values
    """,
    "notification.toolkit.fluxcd.io/v1 Receiver": """
        type secretRef secretRef.name resources resources.apiVersion resources.kind resources.name
    """,
}
FLAGS = HelmFlags(
    atomic=True, cleanup_on_fail=True, create_namespace=True, skip_crds=True, wait=True, timeout=timedelta(days=2)
)


def test_every_field_is_one_that_flux_knows_and_every_one_that_is_listed_is_used() -> None:
    used: dict[str, set[str]] = {}
    for manifest in [*bootstrapped(), *placed()]:
        name = f"{manifest['apiVersion']} {manifest['kind']}"
        if ".toolkit.fluxcd.io/" in name:
            assert set(manifest) == {"apiVersion", "kind", "metadata", "spec"}
            used.setdefault(name, set()).update(fields(manifest["spec"]))
    assert used == {name: set(text.split()) for name, text in FIELDS.items()}


def bootstrapped() -> list[Any]:
    given = Desired(
        commit=PLACEMENT.source_commit,
        fleet=Fleet(repo_url="https://git.example.com/f.git"),
        clusters={WORKER_2: Cluster(name=WORKER_2, engine=EngineName.FLUX)},
        workspaces={WORKSPACE.name: WORKSPACE},
    )
    return list(yaml.safe_load_all(flux(given, WORKER_2, output_branch="placements")))


def placed() -> Iterator[Any]:
    """Every kind of chart, and everything else that makes a difference."""
    charts = [
        chart(),
        chart(secret_ref="login", flags=FLAGS),
        chart(repo_url="oci://registry.example.com/charts", secret_ref="login"),
        chart(repo_url="oci://registry.example.com/charts", version=""),
    ]
    for number, one in enumerate(charts):
        policy = [*DeletionPolicy][number % 2]
        parts = [("web", WEB), ("scaler", SCALER), one, ("a", CONFIG), ("run", "kubectl get pods")]
        deployed = spec(*parts, deletion_policy=policy, service_account="vllm-sa")
        for data in files(deployed, EngineName.FLUX, workspace=JOBFUL).values():
            yield from yaml.safe_load_all(data)


def fields(value: Any, prefix: str = "") -> Iterator[str]:
    """Name every field of a spec, lists passed over; what stands under values is the chart's business."""
    if isinstance(value, list):
        for item in value:
            yield from fields(item, prefix)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield f"{prefix}{name}"
            if name != "values":
                yield from fields(inner, f"{prefix}{name}.")


@pytest.mark.parametrize("kind", FIELDS)
def test_durations_are_written_as_flux_reads_them(kind: str) -> None:
    times = {"interval", "retryInterval", "timeout"}
    for manifest in [*bootstrapped(), *placed()]:
        if f"{manifest['apiVersion']} {manifest['kind']}" == kind:
            written = [text for name, text in manifest["spec"].items() if name in times]
            assert all(text[-1] in "smh" and text[:-1].isdigit() for text in written)
