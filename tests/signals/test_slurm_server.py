"""One question to slurmrestd over HTTP, and every way in which it can fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.adapters.signals import SlurmServer
from reconciler.core.signals.slurm import JOBS, Jobs
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.errors import InvalidInput, Transient
from tests.fakes.slurm import Controller, job, serving

TOKEN = "t0ken-" * 4


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Iterator[Controller]:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as made:
        yield made


def ask(controller: Controller, *, user: str = "", token_file: Path | None = None) -> Jobs:
    with closing(SlurmServer(controller.url, user=user, token_file=token_file)) as server:
        return server.ask(JOBS)


def test_the_newest_version_that_is_served_is_asked_and_remembered(controller: Controller) -> None:
    controller.jobs = [job(1)]
    controller.versions = ("v0.0.41", "v0.0.40")
    process = ProcessMetrics(output_branch="placements", orders=lambda: 0, bugs=lambda: 0)
    with closing(SlurmServer(controller.url + "/", measure=process.call)) as server:
        first, second = server.ask(JOBS), server.ask(JOBS)
    assert [each.gpus for each in first] == [8]
    assert first == second
    asked = [path.split("/")[2] for path in controller.asked]
    assert asked == ["v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41", "v0.0.41"]
    assert process.registry.get_sample_value("overspill_slurm_queries_total", {"code": "200"}) == 2


def test_the_token_is_read_anew_and_is_no_part_of_any_message(controller: Controller, tmp_path: Path) -> None:
    controller.token, file = TOKEN, tmp_path / "token"
    file.write_text("an-older-token\n")
    with closing(SlurmServer(controller.url, user="overspill", token_file=file)) as server:
        with pytest.raises(Transient, match=r"401 .*OVERSPILL_SLURM_TOKEN_FILE") as failure:
            server.ask(JOBS)
        assert "older" not in str(failure.value)
        file.write_text(f"SLURM_JWT={TOKEN}\n")  # as `scontrol token` prints it
        assert server.ask(JOBS) == ()
    assert set(controller.users) == {"overspill"}


@pytest.mark.parametrize("content", [b"", b"two words", b"a\nb", "t\u00f6ken".encode()])
def test_a_file_that_holds_no_token_is_told(controller: Controller, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(Transient, match="OVERSPILL_SLURM_TOKEN_FILE"):
        ask(controller, token_file=tmp_path / "token")
    with pytest.raises(Transient, match="cannot be read"):
        ask(controller, token_file=tmp_path / "none")
    assert controller.asked == []


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (404, b"", "it answers 404 Not Found, not as slurmrestd does"),
        (200, b"<html>", "not as slurmrestd does (is the address right?)"),
        (302, b"", "302 Found, which is not followed"),
        (500, Controller.body(errors=[{"description": "Protocol authentication error"}]), "Protocol authentication"),
        (200, Controller.body(errors=[{"error": "Unable to contact slurm controller"}]), "Unable to contact"),
        (200, b'{"jobs": [' + b" " * (33 << 20) + b"]}", "larger than 32 MiB"),
    ],
)
def test_a_server_that_does_not_answer_as_one_is_told(
    controller: Controller, status: int, body: bytes, told: str
) -> None:
    controller.says = (status, body)
    with pytest.raises(Transient, match=re.escape(told)):
        ask(controller)


def test_an_answer_in_another_format_is_refused(controller: Controller) -> None:
    controller.says = (200, b"{}")
    with pytest.raises(InvalidInput, match="not Slurm's"):
        ask(controller)
