"""The Argo CD objects in repo-layout are those that `overspill bootstrap argocd` prints for it."""

from __future__ import annotations

from pathlib import Path

from reconciler.core.engines.argocd.bootstrap import argocd
from reconciler.core.fleet.assemble import assemble
from reconciler.core.fleet.read_file import parse_file
from reconciler.model.ids import CommitId

ROOT = Path(__file__).parents[2] / "repo-layout"


def desired():
    files = {
        path.relative_to(ROOT).as_posix(): parse_file(path.read_bytes())
        for path in sorted(ROOT.rglob("*"))
        if path.is_file() and path.suffix in (".yaml", ".yml")
    }
    return assemble(CommitId("0" * 40), files)


def test_the_file_is_what_the_command_prints():
    given = desired()
    assert (ROOT / "bootstrap" / "argocd.yaml").read_text() == argocd(given.fleet, given, output_branch="placements")


def test_the_file_is_no_part_of_the_fleet_it_lies_in():
    assert [problem for problem in desired().problems if problem.path.startswith("bootstrap/")] == []
