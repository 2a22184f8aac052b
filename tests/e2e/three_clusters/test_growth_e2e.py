"""A workload outgrows its cluster, spills over into two others by two engines, and shrinks again.

Every pass of the daemon is recorded, and is decided the same again from the recording and git alone.
"""

from __future__ import annotations

import re

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.flux import RELEASES
from tests.e2e.three_clusters.scenario import AT_HOME, CONFIG_MAPS, DEPLOYMENTS, JOBS, Scenario


def test_overflow_runs_in_two_clusters_and_drains_in_reverse_until_nothing_is_left(scenario: Scenario) -> None:
    scenario.begin()
    recording = scenario.fleet.path / "passes"
    with scenario.daemon(RECORD=str(recording)):
        tree, at_home = scenario.tree(), scenario.home.call("GET", f"{DEPLOYMENTS}/vllm")
        scenario.wants(AT_HOME + 5)
        scenario.until_lent(by_flux=2, by_argo_cd=3)
        assert [
            release["spec"]["values"]["servingEngineSpec"]["modelSpec"][0]["replicaCount"]
            for release in scenario.by_flux.items(RELEASES)
        ] == [2]
        for cluster in (scenario.by_flux, scenario.by_argo_cd):
            steps_were_taken_in_order(cluster)
        scenario.wants(AT_HOME + 2)
        scenario.until_lent(by_flux=2, by_argo_cd=0)
        scenario.until_committed('on worker-3 for 30m"')
        scenario.wants(AT_HOME)
        scenario.until_as_before()
        assert [words.split()[-3] for words in scenario.fleet.subjects() if words.startswith("Revert")] == [
            "worker-3",
            "worker-2",
        ]
        assert scenario.tree() == tree
        now = scenario.home.call("GET", f"{DEPLOYMENTS}/vllm")
    assert authors(now) == authors(at_home) | {"kubectl"}, "somebody else has written to the primary's object"
    assert now["spec"] == at_home["spec"]
    replayed = re.fullmatch(r"(\d+) passes from .*Z to .*Z: all decided the same\.\n", scenario.fleet.replay(recording))
    assert replayed is not None
    assert int(replayed[1]) > len(scenario.fleet.subjects())


def steps_were_taken_in_order(cluster: Cluster) -> None:
    """See that the command was done before the manifest was applied, and that before the chart."""
    [job] = cluster.items(JOBS)
    [settings] = [each for each in cluster.items(CONFIG_MAPS) if each["metadata"]["name"] == "vllm-settings"]
    [chart] = cluster.items(DEPLOYMENTS)
    assert settings["data"] == {"CLUSTER": cluster.name}
    moments = [job["status"]["completionTime"], *(each["metadata"]["creationTimestamp"] for each in (settings, chart))]
    assert moments == sorted(moments)


def authors(manifest: Json) -> set[str]:
    """Name who has written to an object."""
    return {str(entry["manager"]) for entry in manifest["metadata"]["managedFields"]}
