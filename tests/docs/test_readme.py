"""README.md and the tutorial are promises: what they tell people to type works, in its order, in an empty directory."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text()
TUTORIAL = (CHECKOUT / "docs" / "tutorial" / "on-this-machine.md").read_text()
BLOCK = re.compile(r"^```sh ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST = BLOCK.findall(README)
BLOCKS = BLOCK.findall(TUTORIAL)
BEGIN = "## Begin a fleet repository"
"""Above it the tutorial shows what the demo says, below what its own commands say."""
NOT_FOR_TESTS = re.compile(r"(make|mkdir|docker|python3 -m (pip|venv)) ")
"""What needs a network, a container engine or the test suite itself; .ci/run does what it can of it."""


SEEN = """
apiVersion: overspill.dev/v1alpha1
kind: Observation
cluster: worker-1
observedAt: "2026-11-20T10:01:00Z"
workloads:
  - kind: Deployment
    namespace: serving
    name: vllm
    wanted: 5
    running: 2
    unschedulable: [{replicas: 3, since: "2026-11-20T10:00:00Z"}]
    replica: {requests: {nvidia.com/gpu: 1}}
---
apiVersion: overspill.dev/v1alpha1
kind: Observation
cluster: worker-2
observedAt: "2026-11-20T10:01:00Z"
pools: [{name: gpu, allocatable: {nvidia.com/gpu: 4, pods: 20}, nodes: [{name: gpu-1}]}]
"""
"""Three replicas of the template of README have no node."""


def test_every_command_works_in_an_empty_home_directory(tmp_path: Path, person: dict[str, str]) -> None:
    """A fresh machine: git knows no name there, and makes none up from that of the host."""
    Path(person["HOME"], ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    person |= {"GIT_CONFIG_NOSYSTEM": "1"}
    there = tmp_path / "empty"
    there.mkdir()
    script = "\n".join(
        f"echo '# block {number}' >&2\n{text}" for number, (mark, text) in enumerate(BLOCKS) if mark == "runnable"
    )
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=there, env=person, check=False, capture_output=True, text=True, timeout=400,
    )  # fmt: skip # a command line, word by word
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    subjects = [
        re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", subject)
        for subject in subprocess.run(
            ["git", "-C", "fleet.git", "log", "--reverse", "--format=%s", "placements"],
            cwd=there,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
    ]
    assert subjects == [
        "start(fleet): the output branch",
        "burst(llm/vllm): 4 replicas on worker-2 for 10m",
        "extend(llm/vllm): 4 replicas on worker-2 until TIME",
        'Revert "burst(llm/vllm): 4 replicas on worker-2 for 10m"',
        "burst(llm/vllm): 4 replicas on worker-3 for 10m",
        'Revert "burst(llm/vllm): 4 replicas on worker-3 for 10m"',
        "hold(llm/vllm): worker-3 until TIME",
        "release(llm/vllm): worker-2 and worker-3",
        "burst(llm/vllm): 4 replicas on worker-2 for 10m",
    ]
    answers = "".join(re.findall(r"^```text\n(.*?)^```$", TUTORIAL.partition(BEGIN)[2], re.MULTILINE | re.DOTALL))
    said = {still(line) for line in done.stdout.splitlines()}
    assert "4 replicas" in answers
    assert [line for line in answers.splitlines() if still(line) not in said] == []
    branch = subprocess.run(
        ["git", "-C", "fleet", "branch", "--show-current"], cwd=there, check=True, capture_output=True, text=True
    )
    assert branch.stdout == "main\n", "the next edit would land on what Overspill writes"


def test_the_one_file_of_readme_is_enough_for_a_burst(tmp_path: Path, person: dict[str, str]) -> None:
    (fleet,) = re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (command,) = [text for mark, text in FIRST if mark == "runnable"]
    assert len(fleet.splitlines()) <= 42
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "fleet.yaml").write_text(fleet)
    (tmp_path / "seen.yaml").write_text(SEEN)
    look = f"{command}echo; overspill plan --repo fleet --observations seen.yaml --at 2026-11-20T10:01:00Z 2>&1"
    done = subprocess.run(["bash", "-euc", look], cwd=tmp_path, env=person, check=True, capture_output=True, text=True)
    assert "2 clusters, 1 workspace, 1 template, 1 policy: 0 errors, 0 warnings" in done.stdout
    (held,) = re.findall(r"^llm/vllm +(\w+)", done.stdout, re.MULTILINE)
    assert f"as `{held}` until" in README
    (placed,) = [line.split() for line in done.stdout.splitlines() if line.startswith("Place")]
    assert (placed[1], placed[3:5]) == ("llm/vllm", ["worker-2", "3"])


def still(line: str) -> str:
    """Return a line of an answer without what another day, hour, person or column width changes."""
    return " ".join(_MOVING.sub("*", line.replace("Ada Lovelace", "Ann")).split())


_MOVING = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z|\b(?:\d+[hms])+\b|\b[0-9a-f]{8,12}\b")


def test_the_daemon_runs_as_it_is_told_to(tmp_path: Path, person: dict[str, str]) -> None:
    (command,) = [text for mark, text in BLOCKS if mark == "daemon"]
    subprocess.run(
        ["bash", "-euc", "overspill init fleet --git && git clone -q --bare fleet fleet.git && mkdir observations"],
        cwd=tmp_path,
        env=person,
        check=True,
        capture_output=True,
    )
    person |= {"OVERSPILL_REPO": str(tmp_path / "fleet.git"), "OVERSPILL_OBSERVATIONS": str(tmp_path / "observations")}
    log = tmp_path / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command.strip()}"], cwd=tmp_path, env=person, stdout=stream, stderr=stream
        )
    until = time.monotonic() + 60
    while b"pushed 1 commit to placements" not in log.read_bytes():
        assert time.monotonic() < until, log.read_text()
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_no_command_escapes_the_tests() -> None:
    assert {mark for mark, _ in FIRST} == {"", "runnable", "clusters"}  # tests/e2e has the clusters
    assert {mark for mark, _ in BLOCKS} == {"", "runnable", "daemon"}
    for mark, text in FIRST + BLOCKS:
        if mark:
            continue
        for line in text.splitlines():
            assert NOT_FOR_TESTS.match(line), f"mark this block runnable, or leave it out: {line}"


def test_it_installs_where_the_system_forbids_pip() -> None:
    """Debian and others mark their Python as theirs (PEP 668): pip installs into an environment alone."""
    (block,) = [text for _, text in FIRST if "pip install" in text]
    made, activated, installed = re.split(r" && |\n", block.strip())
    assert made == f"python3 -m venv {activated.removeprefix('. ').removesuffix('/bin/activate')}"
    assert installed.startswith("python3 -m pip install .")


def test_every_target_of_make_that_it_names_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z0-9]+)", README))
    assert named
    assert named <= targets


def test_the_log_it_shows_is_the_demos() -> None:
    from reconciler.demo.story import timing  # noqa: PLC0415 - only this test knows the demo

    lasting = f"for {timing(1.0).burst}s"
    shown = [line for line in TUTORIAL.partition(BEGIN)[0].splitlines() if re.match(r'(burst\(|Revert "burst\()', line)]
    assert len(shown) == 7
    assert all(lasting in line for line in shown)
