"""What admission looks at in the pods of a template, by the template, its workspace and the kinds of the fleet."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.observe.primary_shape import template_admission
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from tests.builders.inputs import VLLM, desired, template


def test_pods_go_to_the_namespace_that_the_workspace_has_by_now() -> None:
    made, workspace = template(), desired().workspaces[VLLM.workspace]
    (server,) = made.spec.manifests
    nowhere = {**server.manifest, "metadata": {"name": "vllm"}}
    made = replace(made, spec=replace(made.spec, manifests=(replace(server, manifest=nowhere),)))
    for name in ("before", "after"):
        (pods,) = template_admission(made, replace(workspace, namespaces=(name,)), NO_KINDS)
        assert pods.namespace == name
