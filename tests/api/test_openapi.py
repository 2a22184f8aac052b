"""The OpenAPI document is whole, and its examples are what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api.app import create_app
from reconciler.api.backend import Backend
from reconciler.api.routes import placements as placement_body
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.loop import Vitals
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.daemon.orders.order_queue import OrderQueue
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.model.plan import Reason
from tests.builders.desk import answer_desk
from tests.builders.openapi import Contract
from tests.fakes.memory_repository import MemoryRepository


@pytest.fixture(scope="module")
def contract() -> Contract:
    repository = MemoryRepository()
    latest = LatestSnapshot(BranchReader(repository))
    backend = Backend(
        latest=latest,
        shelf=repository,
        queue=OrderQueue(lambda _: None),
        answers=answer_desk(latest, repository),
    )

    def vitals() -> Vitals:
        raise AssertionError("nobody is asked")

    return Contract(
        create_app(
            pushed=PushedObservations(),
            wake=lambda _: None,
            clock=SystemClock(),
            vitals=vitals,
            branches=("main",),
            backend=backend,
            process=ProcessMetrics(output_branch="placements", orders=lambda: 0, bugs=lambda: 0),
        )
    )


def operations(contract: Contract) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in contract.document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_every_reference_leads_somewhere_and_every_schema_is_used(contract: Contract) -> None:
    text = json.dumps(contract.document)
    used = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert used == set(contract.document["components"]["schemas"])


def test_the_reasons_are_those_that_the_code_gives(contract: Contract) -> None:
    schemas = contract.document["components"]["schemas"]
    assert schemas["Reason"]["enum"] == [reason.value for reason in Reason]
    for told in ("RefusedCluster", "HeldBack"):
        assert schemas[told]["properties"]["reason"] == {"$ref": "#/components/schemas/Reason"}


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does(contract: Contract) -> None:
    names = [operation["operationId"] for _, _, operation in operations(contract)]
    assert len(names) == len(set(names))
    assert all(operation.get("description") or operation.get("summary") for _, _, operation in operations(contract))


def test_every_operation_behind_the_door_tells_how_it_is_refused(contract: Contract) -> None:
    for _, path, operation in operations(contract):
        if {"bearer": []} in operation.get("security", ()):  # the token of pushes is another
            assert {"401", "403", "429", "503"} <= set(operation["responses"]), path


def test_every_example_of_an_answer_fits_its_schema(contract: Contract) -> None:
    seen = 0
    for _, _, operation in operations(contract):
        for answer in operation["responses"].values():
            told = answer.get("content", {}).get("application/json", {})
            if "example" in told:
                contract.fit(told["schema"], told["example"])
                seen += 1
    assert seen >= 5


def test_every_example_of_a_body_fits_its_schema_and_is_read(contract: Contract) -> None:
    placements = contract.document["paths"]["/api/v1/workload-placement"]
    one = contract.document["paths"]["/api/v1/workload-placement/{name}"]
    for operation, read in ((placements["post"], placement_body.read_create), (one["put"], placement_body.read_update)):
        told = operation["requestBody"]["content"]["application/json"]
        assert told["examples"]
        for example in told["examples"].values():
            contract.fit(told["schema"], example["value"])
            assert isinstance(read(example["value"]), RequestDraft)


def test_creation_links_to_what_can_be_done_with_it(contract: Contract) -> None:
    links = contract.document["paths"]["/api/v1/workload-placement"]["post"]["responses"]["200"]["links"]
    known = {operation["operationId"] for _, _, operation in operations(contract)}
    assert {link["operationId"] for link in links.values()} == {"getPlacement", "updatePlacement", "deletePlacement"}
    assert {link["operationId"] for link in links.values()} <= known
