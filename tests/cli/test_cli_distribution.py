"""A distribution on the command line: what `plan`, `once` and `explain` tell of it, and what `check` refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal

CLUSTERS = "clusters: [{name: worker-2}, {name: worker-3}]"
WEIGHTED = """\
clusters: [{name: worker-2, weight: 2}, {name: worker-3}]
  distribution: {strategy: Weighted, maxClusters: 2}"""


@pytest.fixture
def weighted(fleet: Remote) -> Remote:
    fleet.commit("main", {**files(), "policies.yaml": policy(WEIGHTED)}, message="share by weight")
    return fleet


def policy(clusters: str) -> bytes:
    return SOURCE_FILES["policies.yaml"].replace(CLUSTERS, clusters).encode()


def files() -> dict[str, bytes]:
    return {path: text.encode() for path, text in SOURCE_FILES.items()}


@pytest.mark.usefixtures("weighted")
def test_plan_tells_what_spoke_for_each_cluster(overspill: Terminal, see: See) -> None:
    see(missing=6, worker_2=8, worker_3=8)
    told = overspill.done("plan")
    assert "; Weighted: weight 2 of 3" in told
    assert "; Weighted: weight 1 of 3" in told


def test_the_branch_holds_the_shares_and_the_log_says_why(overspill: Terminal, see: See, weighted: Remote) -> None:
    see(missing=6, worker_2=8, worker_3=8)
    overspill.done("once")
    log = weighted.git("log", "--format=%B", "placements")
    assert "burst(llm/vllm): 4 replicas on worker-2 for 10m" in log
    assert "burst(llm/vllm): 2 replicas on worker-3 for 10m" in log
    assert "worker-2 chosen: 8 GPUs free, 8 replicas fit, Weighted: weight 2 of 3." in log


@pytest.mark.usefixtures("weighted")
def test_explain_tells_the_distribution_and_what_each_cluster_would_take(overspill: Terminal, see: See) -> None:
    see(missing=6, worker_2=8, worker_3=8)
    told = overspill.done("explain", "vllm")
    assert "Distribution: Weighted, at most 2 clusters" in told
    assert "worker-2 would take 4 of what is missing (Weighted: weight 2 of 3)." in told
    assert overspill.answer("explain", "vllm")["distribution"] == "Weighted, at most 2 clusters"


def test_explain_says_nothing_of_it_where_clusters_are_filled_in_order(overspill: Terminal, see: See) -> None:
    see(missing=6)
    assert "Distribution" not in overspill.done("explain", "vllm")


def test_check_refuses_a_weight_that_nothing_goes_by(overspill: Terminal, tmp_path: Path) -> None:
    idle = policy("clusters: [{name: worker-2, weight: 2}, {name: worker-3}]")
    for path, data in {**files(), "policies.yaml": idle}.items():
        (tmp_path / path).write_bytes(data)
    result = overspill("check", str(tmp_path))
    assert result.exit_code == 1
    assert "spec.distribution: strategy Ordered does not go by the weight of clusters[0]" in result.output
