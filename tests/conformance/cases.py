"""The cases of peers' own tests, which lie beside the checkout, and what of them does not apply here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
FOLDER = HERE.parents[2] / "shared" / "conformance"

Case = dict[str, Any]


def cases(suite: str) -> list[Case]:
    """Read a suite; none where it is not there."""
    path = FOLDER / f"{suite}.json"
    return json.loads(path.read_text())["cases"] if path.exists() else []


def not_applicable(suite: str) -> dict[str, str]:
    """Read why cases do not apply, by id; ``<id>/<variant>`` is one variant of a case."""
    return yaml.safe_load((HERE / "not_applicable.yaml").read_text())[suite]


def applying(suite: str, listed: str, *groups: str) -> list[Any]:
    """Make parameters of a suite's cases of some groups, less those that `listed` says do not apply."""
    left_out = not_applicable(listed)
    return [
        pytest.param(case, id=case["id"])
        for case in cases(suite)
        if case["group"] in groups and case["id"] not in left_out
    ]


def there(suite: str) -> pytest.MarkDecorator:
    """Skip where a suite is not beside the checkout."""
    path = FOLDER / f"{suite}.json"
    return pytest.mark.skipif(not path.exists(), reason=f"no {path.name} in ../shared/conformance")


def suites() -> list[str]:
    """List the suites that the file of what does not apply knows."""
    return sorted(yaml.safe_load((HERE / "not_applicable.yaml").read_text()))


def tally(suite: str) -> str:
    """Count the cases of a suite: those that are run, whole or in part, and those that do not apply."""
    listed, ids = not_applicable(suite), {case["id"] for case in cases(suite)}
    parts = {name.partition("/")[0] for name in listed if "/" in name}
    run = ids - {*listed}
    partly = f", {len(run & parts)} of them in part" if run & parts else ""
    return f"{suite}: {len(run)} of {len(ids)} cases run{partly}; {len(ids - run)} do not apply"
