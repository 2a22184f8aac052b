"""What is rendered is kept by all the fields that rendering reads, and by no field that it does not read."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.core.commits.templates import PassTemplates
from reconciler.core.commits.write import render_placement
from reconciler.core.engines import engine
from reconciler.core.expressions.work import EvaluationBudget
from reconciler.core.fleet.sources.patches import PatchedTemplates
from reconciler.core.fleet.sources.rendering_basis import BASIS, LEFT_OUT, RenderingComparison
from reconciler.core.fleet.spread.pods import render_subset
from reconciler.core.ledger.lifecycle import new_placement
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ReplicaShape
from reconciler.model.placement import Placement
from reconciler.model.policy import BurstPolicy, Desired, EngineName, Fleet
from reconciler.model.units import Resources
from reconciler.model.workload import WorkloadTemplate
from tests.builders.fleet_files import load
from tests.builders.inputs import NOW, VLLM, cluster, desired
from tests.stories.golden import LAYOUT

STORIES = sorted((Path(__file__).parents[1] / "golden").iterdir())
FIELDS = {kind: {each.name for each in fields(kind)} for kind in BASIS}
ELSEWHERE = {(WorkloadTemplate, "path"), (WorkloadTemplate, "line"), (BurstPolicy, "spread")}
"""Read for messages, and compared apart."""


class Reads:
    """Notes the fields of values that are read."""

    def __init__(self) -> None:
        self.noted: set[tuple[type, str]] = set()

    def of(self, value: Any) -> Any:
        """Return a value whose fields are noted as they are read, but by `dataclasses.replace`."""
        kind = type(value)

        def read(watched: Any, name: str) -> Any:
            if name in FIELDS[kind] and sys._getframe(1).f_globals["__name__"] != "dataclasses":
                self.noted.add((kind, name))
            return object.__getattribute__(watched, name)

        watched = object.__new__(type(kind.__name__, (kind,), {"__slots__": (), "__getattribute__": read}))
        for name in FIELDS[kind]:
            object.__setattr__(watched, name, getattr(value, name))
        return watched

    def all_of(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        return {name: self.of(value) for name, value in values.items()}


def placements(wanted: Desired) -> Iterator[Placement]:
    """Make a placement of each workload on each of its clusters, by each engine, and for each subset."""
    for workload, policy in wanted.policies.items():
        subsets = [""] if policy.spread is None else [each.name for each in policy.spread.subsets]
        for name in wanted.workspaces[workload.workspace].clusters:
            for subset in subsets:
                made = new_placement(
                    wanted.templates[workload],
                    policy,
                    wanted,
                    NOW,
                    cluster=name,
                    replicas=1,
                    shape=ReplicaShape(requests=Resources()),
                    subset=subset,
                )
                yield from (replace(made, engine=each) for each in EngineName)


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.name)
def test_rendering_reads_no_field_that_is_left_out(story: Path) -> None:
    files = {
        str(path.relative_to(root)): path.read_text()
        for root in (LAYOUT, story / "fleet")
        for path in sorted(root.rglob("*.yaml"))
        if path.relative_to(root).parts[0] != "bootstrap"
    }
    wanted, reads = load(files), Reads()
    made = list(placements(wanted))
    watched = replace(
        wanted,
        fleet=reads.of(wanted.fleet),
        clusters=reads.all_of(wanted.clusters),
        workspaces=reads.all_of(wanted.workspaces),
        templates=reads.all_of(wanted.templates),
        policies=reads.all_of(wanted.policies),
    )
    templates = PassTemplates()
    for placement in made:
        rendered = templates.render(placement, watched)
        here, template = watched.clusters[placement.cluster], watched.templates[placement.workload]
        if placement.subset:
            render_subset(watched, PatchedTemplates(watched).template(template, here), placement, EvaluationBudget())
        if rendered.spec is not None and not engine(placement.engine).to_render(rendered.spec):
            try:
                render_placement(watched, placement, rendered.spec, {}, {})
            except InvalidInput:
                continue
    assert reads.noted
    assert {(kind, name) for kind, name in reads.noted if name not in BASIS[kind]} <= ELSEWHERE


def test_each_field_that_is_left_out_exists() -> None:
    assert all(names <= FIELDS[kind] for kind, names in LEFT_OUT.items())
    assert set(BASIS[BurstPolicy]) <= FIELDS[BurstPolicy]


def test_what_one_of_two_fleets_lacks_is_not_the_same() -> None:
    wanted = desired()
    here = cluster("worker-2").name
    assert RenderingComparison(wanted, wanted).is_same(VLLM, here)
    for changed in (
        replace(wanted, templates={}),
        replace(wanted, policies={}),
        replace(wanted, workspaces={}),
        replace(wanted, clusters={}),
        replace(wanted, fleet=Fleet(repo_url="https://other.example.com")),
    ):
        assert not RenderingComparison(wanted, changed).is_same(VLLM, here)
        assert not RenderingComparison(changed, wanted).is_same(VLLM, here)
