"""A burst that does not get well in one cluster is taken back with the engine's own words, and tried in the next."""

from __future__ import annotations

import json

from tests.e2e.argo_cd import NAMESPACE
from tests.e2e.three_clusters.scenario import AT_HOME, BY_ARGO_CD, BY_FLUX, POLICY, TEMPLATE, Scenario

HELD_BACK = {"coolDown: 5m": "coolDown: 10m", "  hold: 1h": "  rolloutTimeout: 30s\n  hold: 1h"}
"""Taken back after half a minute, and held back for long enough to see that the failed cluster is passed over."""
DEARER_FIRST = {"  - name: Price # the cheaper one first\n    weight: 2\n": "  - name: PolicyOrder\n    weight: 5\n"}
"""The order of the policy before all scores."""


def test_chart_that_fails_goes_to_the_next_cluster(scenario: Scenario) -> None:
    only_here = "{{ 'no licence for ' ~ cluster.name if cluster.name == 'worker-2' else '' }}"
    refusing = {"          pvcStorage:": f'          refuse: "{only_here}"\n          pvcStorage:'}
    scenario.begin({TEMPLATE: refusing, POLICY: HELD_BACK})
    with scenario.daemon():
        scenario.wants(AT_HOME + 1)
        scenario.until_lent(by_flux=0, by_argo_cd=1)
    assert reverts(scenario) == ["worker-2"]
    told = " ".join(scenario.fleet.log("--format=%B"))
    assert "no licence for worker-2." in told, "Helm's own words"
    assert "Overspill-Why: failed" in told


def test_image_that_never_gets_ready_goes_to_the_next_cluster(scenario: Scenario) -> None:
    only_here = "{{ 'registry.invalid/missing' if cluster.name == 'worker-2' else 'registry.invalid/vllm' }}"
    scenario.begin(
        {
            TEMPLATE: {"repository: vllm/vllm-openai": f'repository: "{only_here}"', "tag: v0.10.1": 'tag: "1"'},
            POLICY: HELD_BACK,
        }
    )
    with scenario.daemon():
        scenario.wants(AT_HOME + 1)
        scenario.until_lent(by_flux=0, by_argo_cd=1)
    assert reverts(scenario) == ["worker-2"]


def test_namespace_that_is_refused_sends_the_burst_to_the_next_cluster(scenario: Scenario) -> None:
    scenario.begin({POLICY: HELD_BACK | DEARER_FIRST | {BY_FLUX + BY_ARGO_CD: BY_ARGO_CD + BY_FLUX}})
    # The admin has narrowed what the project may do since.
    allowed = {"spec": {"destinations": [{"name": "worker-3", "namespace": "kubeslice-system"}]}}
    scenario.by_argo_cd.kubectl(
        "patch", "appproject", "overspill", f"--namespace={NAMESPACE}", "--type=merge", "--patch", json.dumps(allowed)
    )
    with scenario.daemon():
        scenario.wants(AT_HOME + 1)
        scenario.until_lent(by_flux=1, by_argo_cd=0)
    assert reverts(scenario) == ["worker-3"]
    assert "do not match any of the allowed destinations" in " ".join(scenario.fleet.log("--format=%B"))


def reverts(scenario: Scenario) -> list[str]:
    """Name the clusters that gave a burst back, in order."""
    return [words.split(" on ")[1].split()[0] for words in scenario.fleet.subjects() if words.startswith("Revert")]
