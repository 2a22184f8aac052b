"""What is listed stands in the order of workspace and name, whole, and page by page."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.explain.catalogue import Catalogue, Key
from reconciler.model.ids import PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Origin
from reconciler.model.request import Asker, Request, RequestRecord
from reconciler.model.workload import DeploySpec
from tests.builders.inputs import NOW, SOURCE, placement


def record(workspace: str, name: str, at: datetime = NOW) -> RequestRecord:
    asked = Request(
        name=TemplateName(name), workspace=WorkspaceName(workspace), namespace="kubeslice-demo", spec=DeploySpec()
    )
    return RequestRecord(
        request=asked, asker=Asker.API, author="Ada", received_at=at, changed_at=at, source_commit=SOURCE
    )


def catalogue(*names: tuple[str, str]) -> Catalogue:
    records = [record(workspace, name) for workspace, name in names]
    return Catalogue({one.workload: one for one in records}, {})


def paged(whole: Catalogue, limit: int) -> list[Key]:
    keys: list[Key] = []
    after = None
    while True:
        page = whole.page(None, after=after, limit=limit)
        assert len(page.items) <= limit
        keys += [item.key for item in page.items]
        after = page.last
        if after is None:
            return keys


NAMES = st.sets(st.tuples(st.sampled_from(["a", "b", "c"]), st.text("xyz", min_size=1, max_size=3)))


@given(NAMES, st.integers(1, 7))
def test_pages_together_are_the_whole_list_in_order(names: set[tuple[str, str]], limit: int) -> None:
    assert paged(catalogue(*names), limit) == [(workspace, name, "") for workspace, name in sorted(names)]


def test_page_goes_on_where_the_last_one_ended_although_entries_have_come_and_gone() -> None:
    before = catalogue(("a", "b"), ("a", "d"), ("a", "f")).page(None, limit=2)
    after = catalogue(("a", "a"), ("a", "e"), ("a", "f")).page(None, after=before.last, limit=2)
    assert [item.name for item in after.items] == ["e", "f"]


def test_only_some_workspaces_are_listed_and_counted() -> None:
    page = catalogue(("a", "x"), ("b", "y"), ("c", "z")).page([WorkspaceName("c"), WorkspaceName("a")], limit=10)
    assert [item.name for item in page.items] == ["x", "z"]
    assert page.total == 2


def test_what_is_not_wanted_is_neither_listed_nor_counted() -> None:
    page = catalogue(("a", "x"), ("a", "xy"), ("b", "y")).page(
        None, wanted=lambda item: item.name.startswith("x"), limit=1
    )
    assert (page.total, page.last) == (2, ("a", "x", ""))


def test_bursts_are_listed_beside_requests_and_what_requests_placed_is_not() -> None:
    burst, placed = placement("worker-2"), placement("worker-3", origin=Origin.REQUEST)
    asked = record("llm", "bookinfo")
    items = Catalogue({asked.workload: asked}, {one.path: one for one in (burst, placed)}).page(None, limit=10).items
    assert [(item.name, item.origin) for item in items] == [
        ("bookinfo", Origin.REQUEST),
        (burst.name, Origin.BURST),
    ]


def test_name_that_several_workspaces_have_is_found_in_each_and_only_where_one_may_look() -> None:
    whole = catalogue(("a", "x"), ("b", "x"), ("b", "y"))
    assert [item.workspace for item in whole.find("x", None)] == ["a", "b"]
    assert [item.workspace for item in whole.find("x", [WorkspaceName("b")])] == ["b"]
    assert whole.find("z", None) == []


def test_request_hides_a_burst_of_the_same_name_in_its_workspace() -> None:
    asked, name = record("llm", "bookinfo"), PlacementName("bookinfo")
    burst = replace(placement("worker-2"), name=name)
    elsewhere = replace(burst, workload=WorkloadId(WorkspaceName("vision"), TemplateName("vllm")))
    whole = Catalogue({asked.workload: asked}, {"one": burst, "two": elsewhere})
    assert [item.origin for item in whole.find("bookinfo", None)] == [Origin.REQUEST, Origin.BURST]
