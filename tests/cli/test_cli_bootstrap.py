"""`bootstrap --apply` shows what it would change in a cluster, asks, and changes nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import Result

from reconciler.cli import main
from tests.builders.ready_fleet import FILES, ReadyFleet
from tests.builders.remote import Remote
from tests.cli.conftest import Terminal
from tests.fakes.kube_api_server import kubeconfig

ARGO_CD = ("bootstrap", "argocd", "--apply", "--context", "worker-3")
FLUX = ("bootstrap", "flux", "--cluster", "worker-2", "--apply", "--context", "worker-2")
BOUNDS = "argocd/overspill"


@pytest.fixture
def ready(tmp_path: Path, overspill: Terminal, fleet: Remote) -> Iterator[ReadyFleet]:
    """Serve three clusters that have all objects already."""
    fleet.commit("main", FILES)
    with ExitStack() as stack:
        ready = ReadyFleet(tmp_path, stack)
        overspill.env["KUBECONFIG"] = str(ready.kubeconfig)
        yield ready


def rows(result: Result) -> list[list[str]]:
    """Return the rows of the table of what changes."""
    return [line.split() for line in result.stdout.splitlines() if line.startswith(("create ", "change ", "keep "))]


def without_objects(ready: ReadyFleet) -> None:
    for plural in list(ready.flux.objects):
        if plural not in ("secrets", "nodes"):
            ready.flux.objects[plural] = {}


def test_objects_that_are_there_are_left_alone(overspill: Terminal, ready: ReadyFleet) -> None:
    done = overspill(*ARGO_CD)
    assert done.exit_code == 0, done.output
    assert rows(done) == [["keep", "AppProject", BOUNDS, "-"], ["keep", "ApplicationSet", BOUNDS, "-"]]
    assert done.stdout.endswith("Nothing to apply: context worker-3 has all 2 objects as they are.\n")


def test_kubeconfigs_are_merged_and_missing_ones_left_out(
    overspill: Terminal, ready: ReadyFleet, tmp_path: Path
) -> None:
    other = kubeconfig(tmp_path / "other", ("elsewhere", "https://127.0.0.1:1"))
    overspill.env["KUBECONFIG"] = os.pathsep.join(map(str, (tmp_path / "nowhere", other, ready.kubeconfig)))
    done = overspill(*ARGO_CD)
    assert done.exit_code == 0, done.output


def test_only_what_differs_is_applied_and_only_once_it_is_confirmed(overspill: Terminal, ready: ReadyFleet) -> None:
    project = ready.argo_cd.objects["appprojects"][BOUNDS]
    bounds, project["spec"] = project["spec"], {**project["spec"], "destinations": []}
    declined = overspill.runner.invoke(main, [*ARGO_CD], env=overspill.env, input="n\n")
    assert declined.exit_code != 0
    assert ready.argo_cd.objects["appprojects"][BOUNDS]["spec"]["destinations"] == []
    done = overspill(*ARGO_CD, "--yes")
    assert done.exit_code == 0, done.output
    assert rows(done)[0] == ["change", "AppProject", BOUNDS, "spec.destinations"]
    assert done.stdout.endswith("Applied 1 object in context worker-3.\n")
    assert ready.argo_cd.objects["appprojects"][BOUNDS]["spec"] == bounds
    stored = [query for _, path, query in ready.argo_cd.asked if "fieldManager" in query and "dryRun" not in query]
    assert stored == [{"fieldManager": "overspill-bootstrap", "force": "false"}]


def test_fields_of_another_tool_are_taken_over_only_when_somebody_says_so(
    overspill: Terminal, ready: ReadyFleet
) -> None:
    project = ready.argo_cd.objects["appprojects"][BOUNDS]
    bounds, project["spec"] = project["spec"], {**project["spec"], "destinations": []}
    ready.argo_cd.managed["/appprojects/overspill"] = ("kubectl-edit", ".spec.destinations")
    refused = overspill(*ARGO_CD, "--yes")
    assert refused.exit_code == 1
    told = "AppProject argocd/overspill: has spec.destinations set by kubectl-edit (--force-conflicts takes that over"
    assert told in refused.stderr
    asked = overspill.runner.invoke(main, [*ARGO_CD], env=overspill.env, input="n\n")
    assert "Apply 1 object in context worker-3, and take what was set by kubectl-edit?" in asked.stderr
    assert ready.argo_cd.objects["appprojects"][BOUNDS]["spec"]["destinations"] == []
    overspill.done(*ARGO_CD, "--yes", "--force-conflicts")
    assert ready.argo_cd.objects["appprojects"][BOUNDS]["spec"] == bounds


def test_objects_of_a_namespace_that_is_made_with_them_are_applied_after_it(
    overspill: Terminal, ready: ReadyFleet
) -> None:
    without_objects(ready)
    done = overspill(*FLUX, "--yes")
    assert done.exit_code == 0, done.output
    assert {row[0] for row in rows(done)} == {"create"}
    assert {"/overspill", "/demo"} == set(ready.flux.objects["namespaces"])
    assert "overspill/placements" in ready.flux.objects["gitrepositories"]
    assert overspill(*FLUX).stdout.endswith("objects as they are.\n")


def test_object_that_is_refused_stops_all_before_anything_is_applied(overspill: Terminal, ready: ReadyFleet) -> None:
    without_objects(ready)
    ready.flux.refuses["/clusterroles/overspill-usual"] = 403
    done = overspill(*FLUX, "--yes")
    assert done.exit_code == 1
    assert "ClusterRole overspill-usual: is not taken: forbids it: " in done.stderr
    assert ready.flux.objects["namespaces"] == {}


def test_context_that_is_not_there_is_told(overspill: Terminal, ready: ReadyFleet) -> None:
    done = overspill("bootstrap", "argocd", "--apply", "--context", "elsewhere")
    assert done.exit_code == 1
    assert "context elsewhere cannot be connected to" in done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--apply",), "--apply needs --context NAME"),
        (("--yes",), "--yes goes with --apply"),
        (("--context", "worker-3"), "--context goes with --apply"),
        (("--apply", "--context", "worker-3", "--since", "-"), "--since goes without --apply"),
    ],
)
def test_cluster_is_never_guessed(words: tuple[str, ...], hint: str, overspill: Terminal) -> None:
    done = overspill("bootstrap", "argocd", *words)
    assert done.exit_code == 2
    assert hint in done.stderr
