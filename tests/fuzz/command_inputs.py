"""Targets for what commands on a person's machine read: scenarios of the lab, objects to lend, answers for a bundle."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from random import Random

import click

from reconciler.cli.actions.setup.lend import Wanted, lend
from reconciler.cli.actions.setup.support_bundle import collect
from reconciler.lab.policy_file import read_policy
from reconciler.lab.scenario_file import read_scenario
from reconciler.settings import Settings
from tests.builders import kube_objects
from tests.builders.passes import SOURCE_FILES
from tests.fakes.loopback import LoopbackHandler, LoopbackServer
from tests.fuzz.mutations import ODD, Corpus, changed_bytes, changed_file, encoded
from tests.fuzz.target import Target

_DEEP = tuple(begin * 3000 + end * 3000 for begin, end in ((b"[", b"]"), (b'{"a":', b"}"), (b"- ", b"")))

# The lab

_DEMANDS = (
    {"steps": [{"at": "0s", "count": 2}, {"at": "10m", "count": 6}]},
    {"table": "wanted.csv"},
    {"requests": {"log": "log.csv", "contextTokensPerSecond": 900, "generatedTokensPerSecond": 90, "window": "1m"}},
    {"recording": {"passes": ".", "workload": "demo/vllm", "begin": "2026-11-20T10:00:00Z"}},
)
_SCENARIOS = Corpus(
    [
        encoded(
            {
                "apiVersion": "overspill.dev/v1alpha1",
                "kind": "LabScenario",
                "metadata": {"name": "peak"},
                "spec": {
                    "about": "a peak",
                    "duration": "2h",
                    "engineDelay": "20s",
                    "workloads": [{"name": "vllm", "home": 2, "gpus": 1, "model": "H100", "demand": demand}],
                    "clusters": [
                        {
                            "name": "worker-2",
                            "nodes": 2,
                            "gpusPerNode": 8,
                            "pricePerGPUHour": 2.5,
                            "startUp": "2m",
                            "owners": [{"at": "5m", "count": 3}],
                            "outages": [{"begin": "10m", "end": "20m", "seen": False}],
                            "autoscaling": {"maxNodes": 3, "delay": "3m", "idle": "10m"},
                            "timeToReady": "90s",
                        }
                    ],
                },
            }
        )
        for demand in _DEMANDS
    ]
)
_TABLES = Corpus([b"second,replicas\n0,2\n600,6\n1200,2\n"])
_LOGS = Corpus(
    [b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.680,374,44\n2023-11-16 18:16:50.1234567,396,9\n"]
)
_POLICIES = Corpus([SOURCE_FILES["policies.yaml"].encode(), encoded({"scaleUp": {"window": "30s"}, "hold": "1h"})])
_CELLS = (b"9" * 5000, b"1e999", b"nan", b"-1", b"inf", b"9999-12-31 23:59:59", b"0001-01-01", b'"', b"\0", b"\xff")


def _changed_table(random: Random, corpus: Corpus) -> bytes:
    data = changed_bytes(random, corpus, random.choice(corpus.files))
    cells = data.split(b",")
    cells[random.randrange(len(cells))] = random.choice(_CELLS)
    return b",".join(cells) if random.random() < 0.5 else data


def _make_scenario(random: Random) -> tuple[bytes, bytes, bytes, bytes]:
    scenario = random.choice(_SCENARIOS.files) if random.random() < 0.3 else changed_file(random, _SCENARIOS)
    scenario = random.choice(_DEEP) if random.random() < 0.02 else scenario
    return (
        scenario,
        _changed_table(random, _TABLES),
        _changed_table(random, _LOGS),
        changed_file(random, _POLICIES),
    )


def _read_scenario(made: tuple[bytes, bytes, bytes, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = ("scenario.yaml", "wanted.csv", "log.csv", "policy.yaml")
        for name, data in zip(names, made, strict=True):
            Path(folder, name).write_bytes(data)
        with _refusals():
            read_policy(Path(folder, "policy.yaml"), "trial")
        read_scenario(Path(folder, "scenario.yaml"))


# Objects to lend

_METADATA = {"name": "chat", "namespace": "demo", "uid": "1", "annotations": {"a": "b"}, "labels": {"app": "chat"}}
_POD = {
    "metadata": {"labels": {"app": "chat"}},
    "spec": {
        "containers": kube_objects.containers(),
        "volumes": [{"name": "c", "configMap": {"name": "settings"}}, {"name": "s", "secret": {"secretName": "key"}}],
        "serviceAccountName": "chat",
    },
}
_LIVE = Corpus(
    [
        encoded(
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": kind,
                        "metadata": _METADATA,
                        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "chat"}}, "template": _POD},
                        "status": {"replicas": 3},
                    },
                    {
                        "apiVersion": "v1",
                        "kind": "Service",
                        "metadata": {"name": "chat", "namespace": "demo"},
                        "spec": {"selector": {"app": "chat"}, "ports": [{"port": 80, "nodePort": 30_001}]},
                    },
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "metadata": {"name": "settings", "namespace": "demo"},
                        "data": {"a": "{{ b }}"},
                    },
                ],
            }
        )
        for kind in ("Deployment", "StatefulSet")
    ]
)
_SETTINGS = Settings(repo="", cache_dir=Path(os.devnull))


def _make_lent(random: Random) -> tuple[bytes, bool]:
    data = random.choice(_DEEP) if random.random() < 0.02 else changed_file(random, _LIVE)
    return data, random.random() < 0.3


def _lend(made: tuple[bytes, bool]) -> None:
    data, reference = made
    with tempfile.TemporaryDirectory() as folder, _refusals():
        fleet = Path(folder, "fleet")
        fleet.mkdir()
        for name, text in SOURCE_FILES.items():
            (fleet / name).write_text(text)
        file = Path(folder, "live.json")
        file.write_bytes(data)
        lend(_SETTINGS, fleet, Wanted(workload=None, reference=reference), file, dry_run=True)


# A bundle

_ANSWERS = Corpus(
    [
        encoded({"statusCode": 200, "data": {"lines": ['{"event":"pushed","token":"x"}', "cut"], "workloads": [{}]}}),
        encoded({"statusCode": 200, "data": {"items": [{"id": "llm/vllm-1", "steps": [{}]}]}, "continue": "a"}),
        encoded({"statusCode": 200, "data": [{"a": {"password": "b"}}], "metadata": {"continue": ""}}),
    ]
)


def _make_answers(random: Random) -> dict[str, bytes]:
    def answer() -> bytes:
        if random.random() < 0.05:
            return b'{"statusCode": 200, "data": {"a": %b}}' % random.choice(_DEEP[:2])
        document = {"statusCode": 200, "data": {"lines": random.choice(ODD), "items": random.choice(ODD)}}
        return encoded(document) if random.random() < 0.2 else changed_file(random, _ANSWERS)

    return {path: answer() for path in ("/api/v1/status", "/api/v1/history", "/api/v1/log", "/metrics")}


def _collect(answers: dict[str, bytes]) -> None:
    class Daemon(LoopbackHandler):
        def do_GET(self) -> None:
            self.reply(200, answers.get(self.path.partition("?")[0], b"{}"))

    with LoopbackServer(Daemon) as server, _refusals():
        bundle = collect(_SETTINGS, server.url)
        for name, data in bundle.files.items():
            if name.endswith(".json"):
                json.loads(data)
        bundle.contents().encode()


@contextmanager
def _refusals() -> Iterator[None]:
    """Take what a command prints, and what it refuses in its own words."""
    with ExitStack() as stack:
        stack.enter_context(suppress(click.ClickException, click.exceptions.Exit))
        stack.enter_context(redirect_stdout(io.StringIO()))
        stack.enter_context(redirect_stderr(io.StringIO()))
        yield


COMMAND_TARGETS: tuple[Target, ...] = (
    Target(name="scenario", make=_make_scenario, run=_read_scenario),
    Target(name="lend", make=_make_lent, run=_lend),
    Target(name="bundle", make=_make_answers, run=_collect),
)
"""What commands read that no daemon does."""
