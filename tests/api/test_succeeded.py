"""A request whose run is complete is told as Succeeded, by its own address and in lists."""

from __future__ import annotations

from pathlib import Path

from tests.builders.daemon import PATH, daemon, small
from tests.builders.remote import Remote


def test_a_complete_request_is_listed_as_succeeded(tmp_path: Path) -> None:
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache") as running:
        assert running.call("POST", PATH, small("train", clusters=["worker-2"])).status == 200
        assert running.call("GET", f"{PATH}?phase=Succeeded").body["data"] == []
        (placement,) = {path.split("/")[2] for path in running.remote.files("placements", "clusters/worker-2")}
        running.sight.complete["worker-2"] = placement
        running.wake("observation")
        running.until(lambda: running.call("GET", f"{PATH}?phase=Succeeded").body["data"])
        (item,) = running.call("GET", f"{PATH}?phase=Succeeded").body["data"]
        assert (item["name"], item["status"]["provisioningStatus"]) == ("train", "Completed")
        (condition,) = item["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("Complete", "Succeeded")
        log = running.remote.git("log", "--format=%B", "placements")
        assert "Overspill-Phase: Succeeded" in log
        assert running.remote.files("placements", "clusters/worker-2") == {}
