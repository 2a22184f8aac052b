"""A real Prometheus that scrapes, and promtool."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MISSING = "not on the PATH (in Debian it comes with the package prometheus)"


def missing(*names: str) -> str:
    """Say which program is missing; empty where all of them are there."""
    return "; ".join(f"{name}: {MISSING}" for name in names if shutil.which(name) is None)


def promtool(*arguments: str) -> str:
    """Run promtool, and return what it says; it has to be content."""
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


class Prometheus:
    """Asks a Prometheus."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def query(self, query: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the value of each series, by its labels without those of the scrape."""
        return {
            _labels(series["metric"]): float(series["value"][1]) for series in self._get("query", query=query)["result"]
        }

    def value(self, query: str) -> float | None:
        """Return the one value of a query; None where there is none."""
        values = list(self.query(query).values())
        assert len(values) <= 1, values
        return values[0] if values else None

    def exemplars(self, query: str) -> list[dict[str, str]]:
        """Return the labels of all exemplars of the last hour."""
        now = time.time()
        found = self._get("query_exemplars", query=query, start=now - 3600, end=now + 60)
        return [exemplar["labels"] for series in found for exemplar in series["exemplars"]]

    def firing(self) -> set[str]:
        """Name the alerts that fire."""
        return {each["labels"]["alertname"] for each in self._get("alerts")["alerts"] if each["state"] == "firing"}

    def rules(self) -> dict[str, str]:
        """Return the health of each rule."""
        return {rule["name"]: rule["health"] for group in self._get("rules")["groups"] for rule in group["rules"]}

    def scraped(self) -> list[str]:
        """Return what went wrong in the last scrape of each target, empty where nothing did."""
        return [
            target["lastError"] for target in self._get("targets")["activeTargets"] if target["health"] != "unknown"
        ]

    def _get(self, path: str, **parameters: Any) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as answer:
            document = json.load(answer)
        assert document["status"] == "success", document
        return document["data"]

    def is_ready(self) -> bool:
        """Tell whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


@contextmanager
def prometheus(
    directory: Path, *, rules: Path | None = None, jobs: Sequence[Mapping[str, object]]
) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes every second, and judges rules as often."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = directory / "prometheus.yaml"
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                "rule_files": [] if rules is None else [str(rules)],
                "scrape_configs": jobs,
            }
        )
    )
    promtool("check", "config", str(config))
    command = [
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage", "--log.level=warn",
    ]  # fmt: skip # a command
    with (directory / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)
        try:
            asked = Prometheus(port)
            deadline = time.monotonic() + 60
            while not asked.is_ready():
                assert time.monotonic() < deadline, (directory / "prometheus.log").read_text()
                time.sleep(0.1)
            yield asked
        finally:
            process.terminate()
            process.wait(30)


def _labels(metric: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, text) for key, text in metric.items() if key not in ("__name__", "instance", "job")))
