"""Whatever stands in place of a mapping or a list of an object is an error or is passed over; nothing ends as a bug."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.model.ids import CommitId
from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, workspace
from tests.builders.workload_kinds import SAMPLES, workload

ODD = ("{{ replicas }}", 7, None, ["a"])
KINDS = {f"{made['apiVersion'].rpartition('/')[0]}/{made['kind']}" for made, _ in SAMPLES.values()}
FILES = {
    **{path: text for path, text in FLEET.items() if path != "templates/vllm.yaml"},
    "workspaces/llm.yaml": workspace(more=f"allowedKinds: [{', '.join(sorted(KINDS))}]").replace("llm-demo", "demo"),
}
"""A fleet whose workspace may deploy every kind, without a template."""


def with_odd_structures(value: Json) -> Iterator[Json]:
    """Yield copies of a value in which one mapping or list, or the value itself, is something else."""
    if not isinstance(value, dict | list):
        return
    yield from ODD
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        for odd in with_odd_structures(item):
            changed = value.copy()
            changed[key] = odd
            yield changed


def template(name: str, manifest: Json) -> bytes:
    kind = manifest["kind"] if isinstance(manifest, dict) else "Deployment"
    file = {
        "apiVersion": "gpr.kubeslice.io/v1alpha1",
        "kind": "WorkloadTemplate",
        "metadata": {"name": name, "annotations": {"overspill.dev/workload": f"{kind}/demo/{name}"}},
        "spec": {
            "workspaceName": "llm",
            "burstDuration": "10m",
            "manifestResources": [{"name": "main", "manifest": manifest}],
            "steps": [{"name": "main", "type": "manifest"}],
        },
    }
    return json.dumps(file).encode()


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "wrapped"])
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.exhaustive(one_in=7)
def test_no_structure_of_a_template_ends_as_a_bug(sample: str, *, wrapped: bool) -> None:
    made = SAMPLES[sample][0]
    if wrapped:
        made = workload("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{"template": made}]})
    files = {path: text.encode() for path, text in FILES.items()}
    for number, changed in enumerate(with_odd_structures(made)):
        files[f"templates/t{number}.yaml"] = template(f"t{number}", changed)
    desired = assemble(CommitId("c" * 40), {path: parse_file(data) for path, data in files.items()})
    assert [str(problem.bug) for problem in desired.problems if problem.bug is not None] == []
