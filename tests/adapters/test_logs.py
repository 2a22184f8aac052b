"""What the log shows, and what it never shows."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest
import structlog

from reconciler.adapters import logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(form: logs.LogFormat, **values: object) -> str:
    stream = io.StringIO()
    logs.configure(form, stream)
    structlog.get_logger().warning("backing off", **values)
    return stream.getvalue()


def test_text_is_one_line_with_the_time_of_day() -> None:
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d warning: backing off tries=3 why='no route'\n", logged("text", tries=3, why="no route")
    )


def test_json_is_one_object_a_line_with_the_full_time() -> None:
    entry = json.loads(logged("json", tries=3))
    assert entry | {"timestamp": ""} == {"event": "backing off", "level": "warning", "tries": 3, "timestamp": ""}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*Z", entry["timestamp"])


ORDERS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
FORGED = "\n09:00:00 error: forged"


@pytest.mark.parametrize("form", ["text", "json"])
def test_foreign_texts_order_no_terminal_about_and_forge_no_line(form: logs.LogFormat) -> None:
    words = f"a\x1b[2J\x9b1m\u202eb\u200bc\rd\u2028e{FORGED}"
    ring = logs.LogRing()
    stream = io.StringIO()
    logs.configure(form, stream, ring=ring)
    structlog.get_logger().error("failed", line=words, why=words, deep={words: [words]}, exc_info=ValueError(words))
    logging.getLogger("library").warning("%s", words)
    shown = stream.getvalue()
    assert ORDERS.findall(shown) == []
    assert not re.search(r"(?m)^09:00:00", shown)
    if form == "json":
        entries = [json.loads(line) for line in shown.splitlines()]
        assert ORDERS.findall("".join(map(str, entries))) == []
    assert len(ring.lines) == 2
    assert ORDERS.findall("".join(ring.lines)) == []


def test_change_is_told_by_its_line() -> None:
    stream = io.StringIO()
    logs.configure("text", stream)
    structlog.get_logger().info("committed", line="burst(llm/vllm): 3 replicas on worker-2 for 10m")
    assert stream.getvalue()[9:] == "burst(llm/vllm): 3 replicas on worker-2 for 10m\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_passwords_and_tokens_never_show(form: logs.LogFormat) -> None:
    secret = "hunter" + "2" * 8
    told = logged(
        form,
        url=f"https://bot:{secret}@git.example.com/fleet.git",
        push_token=secret,
        header=f"Authorization: Bearer {secret}",
        nested={"password": secret, "urls": [f"ssh://x:{secret}@host/"]},
    )
    assert secret not in told
    assert "git.example.com/fleet.git" in told


# Put together here, so that no scanner takes this file for a leak.
@pytest.mark.parametrize(
    "token",
    [
        "gh" + "p_" + "a1B2" * 9,
        "gl" + "pat-" + "a1B2" * 5,
        "s" + "k-" + "a1B2" * 8,
        "AK" + "IA" + "A1B2" * 4,
        "hf" + "_" + "a1B2" * 8,
        "ov" + "s_" + "a1B2" * 10 + "xyz",
        "ey" + "J" + "a1B2" * 3 + ".eyJ" + "a1B2" * 3 + "." + "a1B2" * 3,
    ],
)
def test_token_of_anybody_does_not_show_wherever_it_stands(token: str) -> None:
    told = logged("json", why=f"request: name: '{token}' is not a name", path=f"/api/v1/gpr/{token}", more=[token])
    assert token not in told
    assert "is not a name" in told


@pytest.mark.parametrize("form", ["text", "json"])
def test_traceback_is_redacted_as_well(form: logs.LogFormat) -> None:
    secret = "hunter" + "2" * 8
    stream = io.StringIO()
    logs.configure(form, stream)
    error = ValueError(f"cannot reach https://bot:{secret}@git.example.com")
    structlog.get_logger().error("bug", exc_info=error)
    assert secret not in stream.getvalue()
    assert "ValueError" in stream.getvalue()


def test_control_characters_do_not_reach_the_terminal() -> None:
    told = logged("text", why="\x1b[2J gone\nforged line")
    assert "\x1b" not in told
    assert told.count("\n") == 1


def test_colour_only_when_asked_for() -> None:
    assert "\x1b" not in logged("text")
    stream = io.StringIO()
    logs.configure("text", stream, colour=True)
    structlog.get_logger().error("bug")
    assert "\x1b[31m" in stream.getvalue()


def test_libraries_speak_through_the_same_log() -> None:
    stream = io.StringIO()
    logs.configure("json", stream)
    logging.getLogger("uvicorn.error").info("chatter")
    logging.getLogger("uvicorn.error").warning("odd")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["odd"]


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_full_disk_does_not_end_the_daemon() -> None:
    logs.configure("text", FullDisk())
    structlog.get_logger().info("committed")


def test_stream_that_cannot_write_a_letter_shows_its_code() -> None:
    raw = io.BytesIO()
    logs.configure("text", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    structlog.get_logger().info("für")
    assert b"f\\xfcr" in raw.getvalue()


def test_word_after_bearer_in_prose_is_no_token() -> None:
    assert "the bearer token is missing" in logged("text", why="the bearer token is missing or wrong")
