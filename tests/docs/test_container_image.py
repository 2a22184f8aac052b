"""The Dockerfile keeps its promises, as far as reading it can tell: no container engine is needed for this."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import ssl
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from reconciler.environment import PREFIX, VARIABLES
from tests.builders.certificates import write_pair
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

CHECKOUT = Path(__file__).parents[2]
TEXT = (CHECKOUT / "Dockerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """Split the file into its instructions, with continued lines joined and comments left out."""
    lines = "\n".join(line for line in TEXT.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\s*\\\n\s*", " ", lines)
    return [
        (word.upper(), rest.strip()) for line in joined.splitlines() if line for word, _, rest in [line.partition(" ")]
    ]


def of(word: str, *, final: bool = True) -> list[str]:
    """Return what all instructions of a kind say, of the last stage or of all."""
    found = instructions()
    start = max(number for number, (kind, _) in enumerate(found) if kind == "FROM") if final else 0
    return [rest for kind, rest in found[start:] if kind == word]


def environment() -> dict[str, str]:
    """Return the variables that the image sets."""
    return dict(word.split("=", 1) for rest in of("ENV") for word in shlex.split(rest))


def test_it_is_built_in_one_stage_and_runs_in_another() -> None:
    (base,) = of("ARG", final=False)
    assert re.fullmatch(r"PYTHON=python:3\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base), "a tag can be moved"
    build, run = of("FROM", final=False)
    assert build == "${PYTHON} AS build"
    assert run == build.removesuffix(" AS build"), "a virtual environment needs the very Python that made it"
    assert of("COPY") == ["--from=build /opt/overspill /opt/overspill"]


PINNED = re.compile(r"^([\w.-]+)==(\S+)(?: ; .*)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def pins(path: str) -> dict[str, str]:
    """Read the versions of a file of requirements with hashes, by normalized name; nothing else may be in it."""
    text = (CHECKOUT / path).read_text()
    assert PINNED.sub("", text) == "", "a line without a hash"
    return {match[1].lower().replace("_", "-"): match[2] for match in PINNED.finditer(text)}


def test_each_package_in_it_has_a_hash_and_the_version_that_is_tested() -> None:
    lines = (CHECKOUT / "constraints.txt").read_text().splitlines()
    tested = dict(line.lower().replace("_", "-").split("==") for line in lines if "==" in line)
    image = pins("requirements/image.txt")
    assert {name: tested[name] for name in image if name in tested} == {
        name: version for name, version in image.items() if name in tested
    }
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in project["dependencies"]}
    assert needed <= image.keys(), "run `make requirements`"
    assert "hatchling" in pins("requirements/build.txt")


def test_it_runs_as_a_user_of_its_own_by_number() -> None:
    assert of("USER") == ["10001:10001"]
    order = [word for word, _ in instructions()]
    assert order.index("USER") > max(number for number, word in enumerate(order) if word in ("RUN", "COPY"))


def test_nothing_is_fetched_from_an_address() -> None:
    assert of("ADD", final=False) == []
    assert "://" not in re.sub(r"https?://127\.0\.0\.1:", "", TEXT)
    assert all("/" not in image.split()[0] for image in of("FROM", final=False)), (
        "a registry host is for whoever builds"
    )


def test_all_that_is_written_lies_on_the_cache_or_in_tmp() -> None:
    given = environment()
    assert of("VOLUME") == ["/cache"]
    assert given["HOME"] == "/cache"
    assert given[f"{PREFIX}CACHE_DIR"].startswith("/cache/")
    assert given["PYTHONDONTWRITEBYTECODE"] == "1"
    assert {name.removeprefix(PREFIX) for name in given if name.startswith(PREFIX)} <= {*VARIABLES}


def test_it_brings_what_git_needs_and_leaves_no_lists_behind() -> None:
    (run,) = of("RUN")
    assert {"git", "openssh-client", "ca-certificates"} <= {*run.split()}
    assert "--no-install-recommends" in run
    assert "rm -rf /var/lib/apt/lists/*" in run


def test_it_starts_the_daemon_and_takes_any_other_command() -> None:
    assert [json.loads(rest) for rest in of("ENTRYPOINT")] == [["overspill"]]
    assert [json.loads(rest) for rest in of("CMD")] == [["run"]]


class Health(LoopbackServer):
    """Answers as the daemon does."""

    status = 200


class _Handler(LoopbackHandler):
    server: Health

    def do_GET(self) -> None:
        self.reply(self.server.status if self.path == "/healthz" else 404)


@pytest.fixture
def server() -> Iterator[Health]:
    with Health(_Handler) as opened:
        yield opened


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_the_health_check_believes_the_daemon(server: Health, status: int, healthy: bool) -> None:
    server.status = status
    (check,) = of("HEALTHCHECK")
    options, _, command = check.partition("CMD ")
    assert {"--interval", "--timeout", "--start-period"} <= {word.split("=")[0] for word in options.split()}
    python, flag, program = json.loads(command)
    assert (python, flag) == ("python", "-c")
    ast.parse(program)
    done = subprocess.run(
        [sys.executable, flag, program],
        env={**os.environ, f"{PREFIX}LISTEN": f"0.0.0.0:{server.server_port}"},
        check=False,
        capture_output=True,
        timeout=30,
    )
    assert (done.returncode == 0) is healthy


def test_the_health_check_follows_a_daemon_that_speaks_tls(server: Health, tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "overspill.example.com")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.status = 200
    (check,) = of("HEALTHCHECK")
    listen = {f"{PREFIX}LISTEN": f":{server.server_port}", f"{PREFIX}TLS_CERT_FILE": str(certificate)}
    command = [sys.executable, "-c", json.loads(check.partition("CMD ")[2])[2]]
    subprocess.run(command, env={**os.environ, **listen}, check=True, capture_output=True, timeout=30)


def test_the_build_sees_what_it_needs_and_nothing_private() -> None:
    patterns = [line for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert patterns[0] == "*"

    def sent(path: str) -> bool:
        kept = False
        for pattern in patterns:
            top = path.split("/", maxsplit=1)[0]
            if fnmatch(top, pattern.removeprefix("!")):
                kept = pattern.startswith("!")
        return kept

    pyproject = (CHECKOUT / "pyproject.toml").read_text()
    needed = [
        "pyproject.toml",
        "requirements/image.txt",
        "requirements/build.txt",
        "README.md",
        "LICENSE",
        "reconciler/cli/root.py",
    ]
    needed += [f"{name}/x.yaml" for name in re.findall(r'^"([a-z-]+)" = "reconciler/', pyproject, re.MULTILINE)]
    assert [path for path in needed if not sent(path)] == []
    assert [path for path in (".git/config", ".venv/x", "demo-out/x", "tests/x", "secrets/token") if sent(path)] == []
