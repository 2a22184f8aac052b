"""EGS's own samples, with their indentation restored and their token replaced, and a fleet that takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, cluster, load, text, workspace

FILES = Path(__file__).with_name("egs_sample_files")


def sample(name: str) -> str:
    """Read one sample as it is."""
    return (FILES / name).read_text()


def body(name: str) -> Json:
    """Read one sample of the REST interface."""
    return json.loads(sample(name))


def placement(
    spec: str = "", *, group: str = "gpr", name: str = "settings", where: str = "clusterNames: [worker-2]"
) -> str:
    """Write a placement that deploys one ConfigMap; `spec` are more lines of its spec, `where` names clusters."""
    lines = [line for part in (where, text(spec)) for line in part.splitlines()]
    head = f"apiVersion: {group}.kubeslice.io/v1alpha1\nkind: WorkloadPlacement\nmetadata:\n  name: {name}\nspec:\n"
    manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: llm-demo}, data: {a: b}}"
    deployed = [
        "burstDuration: 15m" if "uration:" not in spec else "",
        "manifestResources:",
        "- name: settings",
        f"  manifest: {manifest}",
        "steps:",
        "- {name: settings, type: manifest}",
    ]
    return head + "".join(f"  {line}\n" for line in (*lines, *deployed) if line)


def egs(kind: str, spec: str, *, name: str = "llm") -> str:
    """Write an object of EGS's."""
    body = "".join(f"  {line}\n" for line in text(spec).splitlines())
    return f"apiVersion: gpr.kubeslice.io/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n{body}"


def fleet(*objects: str, more: Mapping[str, str] | None = None) -> Desired:
    """Load a small fleet with these objects, one file each: 0.yaml, 1.yaml and so on."""
    return load({**FLEET, **{f"policies/{number}.yaml": one for number, one in enumerate(objects)}, **(more or {})})


def open_fleet(*objects: str, jobs: str = "", namespaces: str = "[]") -> Desired:
    """Load a fleet whose only workspace, abc, lets charts be unpinned and takes any namespace."""
    spec = "\n".join(["allowUnpinnedCharts: true", "allowUnknownNeeds: true", *filter(None, [jobs])])
    files = {
        "clusters/worker-1.yaml": cluster("worker-1"),
        "clusters/worker-2.yaml": cluster("worker-2"),
        "workspaces/abc.yaml": workspace("abc", spec).replace("[abc-demo]", namespaces),
    }
    return load({**files, **{f"policies/{number}.yaml": one for number, one in enumerate(objects)}})
