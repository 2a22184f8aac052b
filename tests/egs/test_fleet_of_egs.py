"""A fleet of EGS's kinds, pass by pass on a real bare repository: it bursts without any BurstPolicy."""

from __future__ import annotations

import pytest

from reconciler.adapters.git import GitRepository
from tests.builders.passes import SOURCE_FILES, Passes
from tests.builders.remote import Remote

HEAD = "apiVersion: gpr.kubeslice.io/v1alpha1\n"
GPR_TEMPLATES = "---\n".join(
    f"{HEAD}kind: GPRTemplate\nmetadata: {{name: on-{cluster}}}\n"
    f"spec: {{clusterName: {cluster}, template: {{priority: 150, enableAutoGpuSelection: true}}}}\n"
    for cluster in ("worker-2", "worker-3")
)
BINDING = f"""\
{HEAD}kind: GPRTemplateBinding
metadata: {{name: llm}}
spec:
  enableAutoGPR: true
  clusters:
  - {{clusterName: worker-3, defaultTemplateName: on-worker-3}}
  - {{clusterName: worker-2, defaultTemplateName: on-worker-2}}
"""
FILES = {name: text for name, text in SOURCE_FILES.items() if name != "policies.yaml"} | {
    "gpr-templates.yaml": GPR_TEMPLATES,
    "policies/binding.yaml": BINDING,
}


@pytest.fixture
def passes(remote: Remote, repository: GitRepository) -> Passes:
    """Watch a fleet with four GPUs on worker-2 and eight on worker-3, where three replicas are missing."""
    remote.commit("main", FILES)
    made = Passes(repository)
    made.missing = 3
    return made


def test_it_bursts_where_its_binding_says_and_leaves_the_primary_alone(remote: Remote, passes: Passes) -> None:
    passes.run()
    assert remote.subjects("placements")[0] == "burst(llm/vllm): 3 replicas on worker-3 for 10m"
    written = remote.files("placements", "clusters")
    assert {path.split("/")[1] for path in written} == {"worker-3"}
    (record,) = (data for path, data in written.items() if path.endswith("placement.yaml"))
    assert b"overspill.dev/policy: binding/llm\n" in record
    assert b"overspill.dev/template: vllm\n" in record


def test_what_it_lent_comes_back_when_nothing_is_missing_any_more(remote: Remote, passes: Passes) -> None:
    passes.run()
    passes.missing = 0
    for _ in range(8):
        passes.advance(60)
        passes.run()
    assert remote.files("placements", "clusters") == {}
    assert remote.subjects("placements")[0].startswith('Revert "burst(llm/vllm): 3 replicas on worker-3')


def test_a_second_placement_takes_what_the_first_cluster_has_no_room_for(remote: Remote, passes: Passes) -> None:
    passes.free["worker-3"] = 2
    passes.run()
    assert sorted((one.cluster, one.replicas) for one in passes.placements()) == [("worker-2", 1), ("worker-3", 2)]


def test_without_auto_gpr_it_only_does_what_it_is_asked_for(remote: Remote, passes: Passes) -> None:
    remote.commit("main", {"policies/binding.yaml": BINDING.replace("true", "false")})
    passes.run()
    assert passes.placements() == []
