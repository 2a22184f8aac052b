"""A policy says in a word that all bursts are approved, or in fields which are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.registry import json_schema
from reconciler.model.approval import ApprovalRule
from reconciler.model.ids import ClusterName


def policy(approval: Any) -> dict[str, Any]:
    return {
        "apiVersion": "overspill.dev/v1alpha1",
        "kind": "BurstPolicy",
        "metadata": {"name": "gpu"},
        "spec": {"approval": approval},
    }


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("PullRequest", ApprovalRule()),
        ({"by": "PullRequest"}, ApprovalRule()),
        ({"aboveGPUs": 8}, ApprovalRule(above_gpus=8)),
        (
            {"aboveDollarsPerHour": 50, "clusters": ["cloud-1"], "standsFor": "2h"},
            ApprovalRule(above_dollars_per_hour=50, clusters=(ClusterName("cloud-1"),), stands_for=timedelta(hours=2)),
        ),
        (None, None),
    ],
)
def test_rule_is_read(written: Any, rule: ApprovalRule | None) -> None:
    assert BurstPolicyFile.model_validate(policy(written)).value_of().approval == rule
    if written is not None:
        jsonschema.Draft202012Validator(json_schema("BurstPolicy")).validate(policy(written))


@pytest.mark.parametrize("written", ["Nobody", {"aboveGPUs": -1}, {"aboveDollars": 1}, {"standsFor": 10}, 3])
def test_anything_else_is_refused(written: Any) -> None:
    with pytest.raises(ValidationError):
        BurstPolicyFile.model_validate(policy(written))
