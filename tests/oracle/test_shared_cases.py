"""Whole passes after the tests of Karmada, OpenKruise, Kueue and LeaderWorkerSet, whose cases lie beside the checkout.

Each case is a fleet, what its clusters show, and what has to be placed. The runner lies with the cases. A known
difference to a peer is listed there with its reason (`allow.txt`); what the product still does wrong is listed here.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
PEERS, DEMAND = CASES / "peers", CASES / "demand"
there = pytest.mark.skipif(not PEERS.is_dir(), reason="no peers in ../shared/cases")

WRONG: Mapping[str, str] = {}
"""Cases that the product fails, with what it does wrong."""

DISTRIBUTIONS: Mapping[str, Mapping[str, object]] = {
    "karmada-overflow-07": {"strategy": "Balanced", "tiers": True},
    "karmada-overflow-09": {"strategy": "Balanced", "tiers": True},
    "karmada-overflow-10": {"strategy": "Balanced"},
}
"""Cases that are older than the fields which divide within a tier or a subset, with the distribution of their policy.

Their fact is the peer's, and they end as there with it.
"""


@cache
def runner() -> ModuleType:
    """Load the runner of the cases."""
    spec = importlib.util.spec_from_file_location("shared_run_cases", PEERS / "run_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def differences() -> Mapping[str, str]:
    """Read why cases may end otherwise here than with a peer, by id."""
    lines = (PEERS / "allow.txt").read_text().splitlines()
    rows = (line.partition(" ") for line in lines if line.strip() and not line.startswith("#"))
    return {name: why for name, _, why in rows}


def cases() -> list[Any]:
    """Make a parameter of each case; none where they are not there."""
    listed = [case for path in sorted(PEERS.glob("*.json")) for case in json.loads(path.read_text())["cases"]]
    return [pytest.param(case, id=case["id"], marks=_marks(case["id"])) for case in listed]


def _marks(name: str) -> tuple[pytest.MarkDecorator, ...]:
    wrong = WRONG.get(name)
    return (pytest.mark.xfail(strict=True, raises=AssertionError, reason=wrong),) if wrong else ()


def distributed(case: dict[str, Any], distribution: Mapping[str, object]) -> dict[str, Any]:
    """Write a distribution into the policies of a case."""
    files = {
        path: {**file, "spec": {**file["spec"], "distribution": distribution}}
        if file["kind"] == "BurstPolicy"
        else file
        for path, file in case["files"].items()
    }
    return {**case, "files": files}


@there
@pytest.mark.parametrize("case", cases())
def test_case_of_a_peer_ends_as_there(case: dict[str, Any]) -> None:
    divided = DISTRIBUTIONS.get(case["id"])
    wrong, _ = runner().run(case if divided is None else distributed(case, divided))
    if wrong and divided is None and case["id"] in differences():
        pytest.xfail(differences()[case["id"]])
    assert wrong == []


@there
def test_every_case_that_is_listed_as_wrong_exists_and_is_no_known_difference() -> None:
    known = {case["id"] for path in PEERS.glob("*.json") for case in json.loads(path.read_text())["cases"]}
    assert WRONG.keys() <= known
    assert not WRONG.keys() & differences().keys()


@pytest.mark.exhaustive(one_in=None)  # each runs the command against API servers of its own, for half a minute
@pytest.mark.parametrize("script", ["k4910_gives_back_what_runs.py", "k4910b_gives_back_what_serves.py"])
def test_what_serves_is_given_back_last(script: str) -> None:
    if not (DEMAND / script).exists():
        pytest.skip(f"no {script} in ../shared/cases/demand")
    done = subprocess.run(
        [sys.executable, "-B", DEMAND / script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
