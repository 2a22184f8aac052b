"""Everything killed at the worst moment: what was decided is there afterwards, once, and nothing else has happened."""

from __future__ import annotations

import signal
import threading
import time

from tests.e2e.argo_cd import APPLICATIONS
from tests.e2e.flux import KUSTOMIZE
from tests.e2e.three_clusters.scenario import AT_HOME, POLICY, TEMPLATE, Scenario, running

AWAY = 60
"""Seconds that an API server or the git server is gone."""

_HOOK = """\
#!/bin/sh
touch "{mark}"
while test -e "{mark}"; do sleep 0.1; done
exit {code}
"""


def test_daemon_killed_while_it_pushes_places_once_after_it_is_back(scenario: Scenario) -> None:
    scenario.begin()
    mark = scenario.fleet.path / "pushing"
    with scenario.daemon():
        pass  # the branch has begun
    for lands in (False, True):
        hook = scenario.fleet.bare / "hooks" / "pre-receive"
        hook.write_text(_HOOK.format(mark=mark, code=0 if lands else 1))
        hook.chmod(0o755)
        before = len(scenario.fleet.subjects())
        with scenario.daemon() as process:
            scenario.wants(AT_HOME + (2 if lands else 1))
            scenario.fleet.until(mark.exists, "nothing is pushed")
            process.send_signal(signal.SIGKILL)  # its commit is written, and the server has it in its hands
            process.wait()
        mark.unlink()
        if lands:
            scenario.fleet.until(
                lambda before=before: len(scenario.fleet.subjects()) == before + 1, "it has not landed"
            )
        hook.unlink()
        with scenario.daemon():
            scenario.until_lent(by_flux=2 if lands else 1, by_argo_cd=0)
        assert len(scenario.fleet.subjects()) == before + 1, "placed twice"


def test_engines_killed_between_fetch_and_apply_go_on_where_they_were(scenario: Scenario) -> None:
    scenario.begin()
    flux, argo_cd = scenario.three.flux, scenario.three.argo_cd
    with scenario.daemon():
        flux.kill(KUSTOMIZE)
        argo_cd.kill("argocd-application-controller")
        scenario.wants(AT_HOME + 4)
        scenario.until_placed(worker_2=2, worker_3=2)
        placed = scenario.fleet.subjects()
        scenario.by_flux.until(lambda: flux.fetched() == scenario.fleet.tip(), "Flux has not fetched")
        scenario.by_argo_cd.until(lambda: scenario.by_argo_cd.items(APPLICATIONS), "Argo CD has not fetched")
        flux.kill(flux.source)
        argo_cd.kill("argocd-repo-server")
        for name in (flux.source, KUSTOMIZE):
            flux.start(name)
        for name in ("argocd-repo-server", "argocd-application-controller"):
            argo_cd.start(name)
        scenario.until_lent(by_flux=2, by_argo_cd=2)
        assert scenario.fleet.subjects() == placed, "placed again"
        scenario.wants(AT_HOME)
        scenario.until_as_before()
        assert [subject.partition(" ")[0] for subject in scenario.fleet.subjects()[len(placed) :]] == ["Revert"] * 2


def test_nothing_is_taken_back_because_a_cluster_or_the_remote_is_away(scenario: Scenario) -> None:
    scenario.begin(
        {
            "fleet.yaml": {"observationMaxAge: 2m": "observationMaxAge: 15s"},
            TEMPLATE: {"burstDuration: 30m": "burstDuration: 150s"},
            POLICY: {"renew: WhileNeeded": "renew: Never", "  hold: 1h": "  rolloutTimeout: 30s\n  hold: 1h"},
        }
    )
    lenders = (scenario.by_flux, scenario.by_argo_cd)
    with scenario.daemon() as process:
        scenario.wants(AT_HOME + 4)
        scenario.until_lent(by_flux=2, by_argo_cd=2)
        commits, expiry = scenario.fleet.subjects(), scenario.expiry()
        # Home is seen meanwhile, and goes on asking: what has failed would be taken back.
        for cluster in lenders:
            cluster.kill("kube-apiserver")
        git_away = threading.Timer(AWAY, scenario.fleet.server.start)
        scenario.fleet.server.kill()
        git_away.start()
        time.sleep(AWAY)
        for cluster in lenders:
            cluster.start("kube-apiserver")
        git_away.join()
        with_home_away(scenario)
        assert scenario.fleet.subjects() == commits, "something was taken back"
        assert [running(cluster) for cluster in lenders] == [2, 2]
        scenario.wants(AT_HOME)  # what is missing when its time is over would be placed anew
        process.send_signal(signal.SIGHUP)
        both = len(commits) + 2
        scenario.fleet.until(lambda: len(scenario.fleet.subjects()) == both, f"nothing at {expiry}", within=150)
        assert all(subject.startswith("Revert") for subject in scenario.fleet.subjects()[-2:])
        scenario.until_as_before()


def with_home_away(scenario: Scenario) -> None:
    """Take the primary's API server away for longer than it counts as seen."""
    scenario.home.kill("kube-apiserver")
    time.sleep(20)
    scenario.home.start("kube-apiserver")
