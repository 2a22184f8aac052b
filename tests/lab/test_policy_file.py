"""The policy on trial: errors name its own file and lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import InvalidInput
from reconciler.lab.fleet_files import POLICY_PATH, fleet_files
from reconciler.lab.policy_file import TrialPolicy, read_policy
from tests.lab.test_simulation import POLICY, SCENARIO

FLEET = b"apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: ours}\nspec: {engine: flux}\n"


def read(tmp_path: Path, content: bytes) -> TrialPolicy:
    (tmp_path / "ours.yaml").write_bytes(content)
    return read_policy(tmp_path / "ours.yaml", "ours")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (POLICY.replace(b"30s", b"soon"), "ours.yaml:7: spec.scaleUp.window: 'soon' is not a duration (try '10m'"),
        (POLICY.replace(b"scaleUp", b"scaleup"), "ours.yaml:7: spec.scaleup: unknown field (try 'scaleUp')"),
        (POLICY.partition(b"spec:")[0] + b"spec: [", "ours.yaml:4: is not YAML"),
        (POLICY.partition(b"spec:")[0] + b"spec: none\n", "ours.yaml:4: spec: must be a mapping"),
        (
            POLICY + b"  signals: [{type: Prometheus, query: up, address: 'https://a:b4kQx8Lm2@prom.example.com'}]\n",
            "ours.yaml:10: spec.signals[0].address: ",
        ),
        (b"", "ours.yaml: holds no BurstPolicy (try a file with kind: BurstPolicy)"),
        (FLEET, "ours.yaml: holds Fleet and no BurstPolicy (try a file with kind: BurstPolicy)"),
        (b"- a list\n", "ours.yaml: holds no BurstPolicy"),
        (
            POLICY + b"---\n" + POLICY,
            "ours.yaml: holds 2 policies, and one is tried at a time (try a file for each)",
        ),
    ],
)
def test_fault_is_told_with_the_line_of_its_own_file(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, content)
    assert str(refused.value).startswith(f"{tmp_path}/{message}")


def test_policy_is_found_among_the_other_objects_of_its_file(tmp_path: Path) -> None:
    policy = read(tmp_path, FLEET + b"---\n" + POLICY)
    assert fleet_files(SCENARIO, policy.data)[POLICY_PATH] == fleet_files(SCENARIO, POLICY)[POLICY_PATH]
    (tmp_path / "wrong.yaml").write_bytes(FLEET + b"---\n" + POLICY.replace(b"12", b"many"))
    with pytest.raises(InvalidInput, match=r"wrong.yaml:11: spec.maxReplicas: must be a whole number"):
        read_policy(tmp_path / "wrong.yaml", "wrong")


def test_cluster_that_the_scenario_lacks_is_told_with_those_that_it_has(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, POLICY.replace(b"worker-3", b"gpu-eu")).check(SCENARIO)
    assert str(refused.value) == (
        f"{tmp_path}/ours.yaml:5: spec.clusters[1].name: scenario hour has no cluster gpu-eu (it has worker-2 and"
        " worker-3: name these in the policy, or describe yours in a LabScenario)"
    )


def test_templates_and_workspaces_of_the_policy_need_not_be_in_the_scenario(tmp_path: Path) -> None:
    read(tmp_path, POLICY + b"  templates: [ours]\n  workspaces: [ours]\n").check(SCENARIO)
