"""The simulated clusters: honest enough that nothing is told which does not follow from the branch."""

from __future__ import annotations

import io
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.core.observe import observation_file
from reconciler.core.schema import yaml
from reconciler.demo.clusters import DemoCluster, Primary, read, read_branch
from reconciler.demo.stage import DemoDirectory, edit_fields
from reconciler.demo.story import acts, timing
from reconciler.errors import InvalidInput
from reconciler.model.units import parse_duration

LAYOUT = Path(__file__).parents[2] / "repo-layout"
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def primary() -> Primary:
    return Primary(read(LAYOUT / "observations" / "worker-1.yaml"))


@pytest.fixture
def cluster(primary: Primary) -> DemoCluster:
    return DemoCluster(read(LAYOUT / "observations" / "worker-2.yaml"), primary.replica)


def test_replicas_get_a_node_a_turn_after_they_are_applied(cluster: DemoCluster) -> None:
    cluster.apply({"vllm-1": 3})
    assert (cluster.bound, cluster.settled) == ({}, False)
    cluster.schedule(NOON)
    assert (cluster.bound, cluster.settled) == ({"vllm-1": 3}, True)


def test_no_more_replicas_than_fit_get_a_node(cluster: DemoCluster) -> None:
    room = cluster.room()
    cluster.apply({"vllm-1": room + 2})
    cluster.schedule(NOON)
    assert cluster.bound == {"vllm-1": room}
    assert not cluster.settled
    assert cluster.room() == 0


def test_replicas_without_a_node_are_reported_with_the_moment_the_scheduler_first_found_none(
    cluster: DemoCluster,
) -> None:
    room = cluster.room()
    cluster.apply({"vllm-1": room + 2})

    def pending_pods() -> dict[str, tuple[int, datetime | None]]:
        text = yaml.emit(cluster.observation(NOON + timedelta(minutes=1)))
        (seen,) = observation_file.read(text.encode(), "seen.yaml")
        return {name: (one.replicas, one.since) for name, one in seen.pending_pods.items()}

    assert pending_pods() == {"vllm-1": (room + 2, None)}
    cluster.schedule(NOON)
    cluster.schedule(NOON + timedelta(seconds=30))
    assert pending_pods() == {"vllm-1": (2, NOON)}
    cluster.apply({"vllm-1": room})
    cluster.schedule(NOON + timedelta(seconds=45))
    assert pending_pods() == {}


def test_a_pruned_placement_gives_its_nodes_back(cluster: DemoCluster) -> None:
    room = cluster.room()
    cluster.apply({"vllm-1": room})
    cluster.schedule(NOON)
    cluster.apply({})
    cluster.schedule(NOON)
    assert (cluster.bound, cluster.room()) == ({}, room)


def test_cordoned_nodes_take_nothing(primary: Primary) -> None:
    third = DemoCluster(read(LAYOUT / "observations" / "worker-3.yaml"), primary.replica)
    assert third.room() == 12


def test_what_is_bound_is_reported_as_used(cluster: DemoCluster) -> None:
    cluster.apply({"vllm-1": 3})
    cluster.schedule(NOON)
    (seen,) = observation_file.read(yaml.emit(cluster.observation(NOON)).encode(), "seen.yaml")
    assert seen.observed_at == NOON
    assert seen.bound == {"vllm-1": 3}
    (node,) = seen.pools[0].nodes
    assert node.free.amounts["nvidia.com/gpu"] == 1 * 10**9


def test_the_newest_waiting_replicas_are_the_first_to_go(primary: Primary) -> None:
    primary.scale(3, NOON)
    primary.scale(6, NOON + timedelta(seconds=5))
    primary.scale(2, NOON + timedelta(seconds=9))
    (seen,) = observation_file.read(yaml.emit(primary.observation(NOON)).encode(), "seen.yaml")
    workload, _ = seen.workloads
    assert [(wait.replicas, wait.since) for wait in workload.waiting] == [(2, NOON)]
    assert (workload.wanted, workload.running) == (18, 16)


def test_the_engine_counts_deployments_only_where_engines_look() -> None:
    deployment = b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 3}\n"
    archive = tar(
        {
            "clusters/worker-2/vllm-1/placement.yaml": deployment,
            "clusters/worker-2/vllm-1/manifests/a.yaml": deployment,
            "clusters/worker-2/vllm-1/manifests/b.yaml": b"kind: ConfigMap\n---\n" + deployment,
            "clusters/worker-3/vllm-2/manifests/c.yaml": b"kind: Service\n",
            "ledger/llm/vllm.yaml": deployment,
            "README.md": b"kind: Deployment",
        }
    )
    assert read_branch(archive) == {"worker-2": {"vllm-1": 6}, "worker-3": {"vllm-2": 0}}


def test_the_layouts_example_replica_is_what_its_template_deploys(primary: Primary) -> None:
    template = yaml.parse((LAYOUT / "templates" / "vllm.yaml").read_bytes(), "vllm.yaml")[0].value
    (server,) = [one for one in template["spec"]["manifestResources"] if one["name"] == "server"]
    pod = server["manifest"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    asked = {**container["resources"]["limits"], **container["resources"]["requests"]}
    assert {name: str(amount) for name, amount in asked.items()} == {
        name: str(amount) for name, amount in primary.replica["requests"].items()
    }
    assert pod["nodeSelector"] == primary.replica["nodeSelector"]


def test_hurrying_touches_the_named_words_and_nothing_else(tmp_path: Path) -> None:
    stage = DemoDirectory(out=tmp_path)
    stage.fleet.mkdir()
    (stage.fleet / "a.yaml").write_text("spec:\n  up: {window: 30s}  # soon\n  rest: 5m # long\n  max: 5m\n")
    edit_fields(stage, {"a.yaml": {"spec.up.window": "3s", "spec.rest": "60s"}})
    assert (stage.fleet / "a.yaml").read_text() == "spec:\n  up: {window: 3s}  # soon\n  rest: 60s # long\n  max: 5m\n"


def test_hurrying_a_field_that_is_not_there_is_told(tmp_path: Path) -> None:
    stage = DemoDirectory(out=tmp_path)
    stage.fleet.mkdir()
    (stage.fleet / "a.yaml").write_text("spec: {}\n")
    with pytest.raises(InvalidInput, match=r"a\.yaml: spec\.coolDown: is not there"):
        edit_fields(stage, {"a.yaml": {"spec.coolDown": "1s"}})


def test_the_story_fits_in_a_minute_and_its_windows_in_the_burst() -> None:
    told = timing(1.0)
    windows = 2 * told.scale_up + told.scale_down
    assert windows < told.burst < 45
    assert told.cool_down > told.burst
    values = {field: value for edits in told.edits.values() for field, value in edits.items()}
    assert values.pop("spec.headroom") == "0"
    assert all(map(parse_duration, values.values()))
    assert len({act.title for act in acts(told)}) == len(acts(told))


def tar(files: dict[str, bytes]) -> bytes:
    """Pack files as git archive does."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()
