"""The cases of peers' own tests, which lie beside the checkout, and what of them does not apply here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.given import given

HERE = Path(__file__).parent
FOLDER = HERE.parents[2] / "shared" / "conformance"

Case = dict[str, Any]

SUITES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "division": {"division": ()},
    "kinds": {
        "workloadspread": ("nested_field", "replicas_path", "workload_replicas"),
        "lws": ("lws_group_resources",),
    },
    "groups": {
        "lws": (
            "workload_state_machine", "workload_index", "group_workloads", "mk_adapter", "incremental_nominate",
            "dispatch_modes", "orphan_gc", "lws_defaulting", "lws_validation", "lws_subgroup_index",
            "lws_exclusive_topology",
        ),
    },
    "workloadspread_counts": {
        "workloadspread": (
            "scale_in_order", "scenario", "deletion_cost", "reconcile_status", "initial_status", "adaptive_reschedule",
            "ud_min_max_allocator", "ud_adaptive_allocator", "ud_specific_allocator",
        ),
    },
    "workloadspread_patch": {"workloadspread": ("patch", "validation_patch", "match_score", "statefulset_subset")},
    "workloadspread_validation": {
        "workloadspread": (
            "validation_error", "validation_ok", "validation_conflict", "validation_update", "target_filter",
            "replicas_path",
        ),
    },
}  # fmt: skip # a table, a row a line
"""The groups of cases that each suite of tests runs, by the file that they are in; all of it where none is named."""


def ids(suite: str) -> set[str]:
    """Name the cases that a suite runs, or says of why it does not."""
    return {
        case["id"]
        for file, groups in SUITES[suite].items()
        for case in cases(file)
        if not groups or case["group"] in groups
    }


def cases(file: str) -> list[Case]:
    """Read the cases of a file; none where it is not there."""
    path = FOLDER / f"{file}.json"
    return json.loads(path.read_text())["cases"] if path.exists() else []


def not_applicable(suite: str) -> dict[str, str]:
    """Tell why cases do not apply, by id; ``<id>/<variant>`` is one variant of a case."""
    return _not_applicable()[suite]


@cache
def _not_applicable() -> dict[str, dict[str, str]]:
    """Read why cases do not apply, by suite."""
    return yaml.load((HERE / "not_applicable.yaml").read_bytes(), yaml.CSafeLoader)


@cache
def ignored_fields(group: str) -> tuple[str, ...]:
    """Name the fields of a group's cases that no adapter reads."""
    listed: dict[str, dict[str, str]] = yaml.load((HERE / "ignored_fields.yaml").read_bytes(), yaml.CSafeLoader)
    return tuple(listed.get(group, {}))


def applying(file: str, suite: str, *groups: str) -> list[Any]:
    """Make parameters of a file's cases of some groups, less those that do not apply in a suite."""
    left_out = not_applicable(suite)
    return [
        pytest.param(case | {"input": given(case["input"])}, id=case["id"])
        for case in cases(file)
        if case["group"] in groups and case["id"] not in left_out
    ]


def there(file: str) -> pytest.MarkDecorator:
    """Skip where the cases of a file are not beside the checkout."""
    path = FOLDER / f"{file}.json"
    return pytest.mark.skipif(not path.exists(), reason=f"no {path.name} in ../shared/conformance")


def tally(suite: str) -> str:
    """Count the cases of a suite: those that are run, whole or in part, and those that do not apply."""
    listed, known = not_applicable(suite), ids(suite)
    parts = {name.partition("/")[0] for name in listed if "/" in name}
    run = known - {*listed}
    partly = f", {len(run & parts)} of them in part" if run & parts else ""
    return f"{suite}: {len(run)} of {len(known)} cases run{partly}; {len(known - run)} do not apply"


def fnv(text: str, *, last: bool) -> int:
    """Hash a text by FNV in 32 bits: FNV-1, or FNV-1a, where the `last` step with each byte is to multiply.

    Of equal shares peers serve the first by a hash, and Overspill the first in the policy's order. A hash is an order
    as well, so their cases are run with policies that have their clusters in it.
    """
    made = 0x811C9DC5
    for byte in text.encode():
        made = (made ^ byte) * 0x01000193 if last else made * 0x01000193 ^ byte
        made &= 0xFFFFFFFF
    return made
