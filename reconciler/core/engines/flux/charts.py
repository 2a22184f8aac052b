"""Charts that Flux installs: the source of each, and its HelmRelease.

Both live in the control namespace, not in that of the release: they outlive it, and may make it. The release's own
record lies in the release's namespace, so that two tenants can have a release of the same name.
"""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta

from reconciler.core.engines.flux.names import APPLIER, TOOLKIT, flux_duration
from reconciler.core.engines.refusals import plain_name
from reconciler.core.safety.lifetime import has_own_effect
from reconciler.core.safety.rules import exact_version
from reconciler.core.safety.scope import is_cluster_scoped
from reconciler.core.schema.yaml import emit
from reconciler.core.workloads.builtin_kinds import POD_TEMPLATES, Kinds
from reconciler.model.ids import PlacementName
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.policy import Flux, Workspace
from reconciler.model.workload import HelmConfig, HelmFlags, Json

_HELM_TIMEOUT = timedelta(minutes=5)
"""Helm's own."""

_MAX_NAME = 63
"""The name becomes the value of a label on each of the chart's objects."""

_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_OCI = "oci://"


def objects(placement: PlacementName, chart: HelmConfig, flux: Flux, patches: list[Json]) -> tuple[Json, Json]:
    """Make the source and the HelmRelease of a chart; Kustomize applies `patches` to its objects, beside labels."""
    name = _name(placement, chart.name)
    metadata = {"name": name, "namespace": flux.namespace}
    source = _oci(chart, metadata) if chart.repo_url.startswith(_OCI) else _repository(chart, metadata)
    return source, _release(placement, chart, metadata, source, patches)


def timeout(chart: HelmConfig) -> timedelta:
    """Return the time that one try to install a chart may take."""
    return chart.flags.timeout or _HELM_TIMEOUT


def _name(placement: PlacementName, chart: str) -> str:
    """Name a chart's objects after the placement and the chart, with a hash where that is too long or not a name."""
    room = _MAX_NAME - len(placement) - 1
    slug = re.sub(r"[^a-z0-9]+", "-", chart.lower()).strip("-")
    if slug != chart or len(slug) > room:
        digest = hashlib.sha256(chart.encode()).hexdigest()[:8]
        slug = "-".join(part for part in (slug[: room - len(digest) - 1].strip("-"), digest) if part)
    return f"{placement}-{slug}"


def _repository(chart: HelmConfig, metadata: Json) -> Json:
    spec: dict[str, Json] = {"interval": "1h", "url": chart.repo_url}
    if chart.secret_ref:
        spec["secretRef"] = {"name": chart.secret_ref}
    return {"apiVersion": f"source.{TOOLKIT}/v1", "kind": "HelmRepository", "metadata": metadata, "spec": spec}


def _oci(chart: HelmConfig, metadata: Json) -> Json:
    """Point at one artifact. A tag cannot hold the plus of a version: Helm writes an underscore."""
    exact = exact_version(chart.version)
    spec: dict[str, Json] = {
        "interval": "1h",
        "url": f"{chart.repo_url.rstrip('/')}/{plain_name(chart)}",
        "ref": {"tag": chart.version.replace("+", "_")} if exact else {"semver": chart.version or "*"},
        "layerSelector": {"mediaType": _LAYER, "operation": "copy"},
    }
    if chart.secret_ref:
        spec["secretRef"] = {"name": chart.secret_ref}
    return {"apiVersion": f"source.{TOOLKIT}/v1", "kind": "OCIRepository", "metadata": metadata, "spec": spec}


def _release(placement: PlacementName, chart: HelmConfig, metadata: Json, source: Json, patches: list[Json]) -> Json:
    reference = {"kind": source["kind"], "name": metadata["name"]}
    spec: dict[str, Json] = {
        "interval": "10m",
        "timeout": flux_duration(timeout(chart)),
        "releaseName": chart.release_name,
        "targetNamespace": chart.release_namespace,
        "storageNamespace": chart.release_namespace,
        "serviceAccountName": APPLIER,
    }
    if source["kind"] == "OCIRepository":
        spec["chartRef"] = reference
    else:
        spec_of_chart = {"chart": plain_name(chart), "version": chart.version or "*", "sourceRef": reference}
        spec["chart"] = {"spec": spec_of_chart}
    spec.update(_actions(chart.flags))
    # Drift is corrected, but for replicas, which an autoscaler of the chart may own. A new count in the values makes
    # another version of the release and is applied all the same.
    kinds = {"kind": "(Deployment|StatefulSet)"}
    spec["driftDetection"] = {"mode": "enabled", "ignore": [{"paths": ["/spec/replicas"], "target": kinds}]}
    spec["postRenderers"] = [{"kustomize": {"patches": [*_labels(placement), *patches]}}]
    spec["values"] = chart.values
    return {"apiVersion": f"helm.{TOOLKIT}/v2", "kind": "HelmRelease", "metadata": metadata, "spec": spec}


def _labels(placement: PlacementName) -> list[Json]:
    """Label the pods of the chart's workloads, so that they can be counted; a chart without any is left as it is.

    Kustomize wants a name and a kind in a patch, and goes by the target alone.
    """
    groups: dict[str, list[str]] = {}
    for kind in sorted(POD_TEMPLATES):
        group, _, name = kind.partition("/")
        groups.setdefault(group, []).append(name)
    return [
        {
            "target": {"group": group, "kind": f"({'|'.join(kinds)})"},
            "patch": emit({
                "apiVersion": f"{group}/v1",
                "kind": kinds[0],
                "metadata": {"name": "any"},
                "spec": {"template": {"metadata": {"labels": {PLACEMENT_LABEL: str(placement)}}}},
            }),
        }
        for group, kinds in groups.items()
    ]  # fmt: skip # as YAML would have it


def keep_patches(workspace: Workspace, kinds: Kinds, schemas: ObjectSchemas) -> list[Json]:
    """Have Helm keep what others live in, of the kinds that a workspace allows, when it uninstalls a chart.

    https://helm.sh/docs/howto/charts_tips_and_tricks/#tell-helm-not-to-uninstall-a-resource
    """
    return [
        {
            "target": {"group": group, "kind": name},
            "patch": emit({
                "apiVersion": f"{group}/v1".removeprefix("/"),
                "kind": name,
                "metadata": {"name": "any", "annotations": {"helm.sh/resource-policy": "keep"}},
            }),
        }
        for group, _, name in (
            kind.partition("/")
            for kind in sorted(workspace.allowed_kinds)
            if is_cluster_scoped(kind, kinds, schemas) and not has_own_effect(kind)
        )
    ]  # fmt: skip # as YAML would have it


def _actions(flags: HelmFlags) -> dict[str, Json]:
    """Translate Helm's flags. Atomic implies waiting, and one more try after what may have been a passing failure."""
    install: dict[str, Json] = {}
    upgrade: dict[str, Json] = {}
    if flags.create_namespace:
        install["createNamespace"] = True
    if flags.skip_crds:
        install["crds"] = "Skip"
    if not (flags.wait or flags.atomic):
        install["disableWait"] = True
        upgrade["disableWait"] = True
    if flags.cleanup_on_fail:
        upgrade["cleanupOnFail"] = True
    if flags.atomic:
        install["remediation"] = {"retries": 1, "remediateLastFailure": True}
        upgrade["remediation"] = {"retries": 1, "remediateLastFailure": True, "strategy": "rollback"}
    actions = {"install": install, "upgrade": upgrade, "uninstall": {"deletionPropagation": "foreground"}}
    return {action: settings for action, settings in actions.items() if settings}
