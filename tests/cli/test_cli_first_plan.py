"""README's first plan: four commands from a kubeconfig, one question, no line by hand, at most eight concepts."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path

import pytest

from reconciler.cli import main
from tests.cli.conftest import Terminal
from tests.cli.test_cli_kubeconfig_init import FLUX, PersonRunner
from tests.cli.test_cli_lend import DEPLOYMENT, Clusters
from tests.docs.concept_terms import MOST, concepts

README = (Path(__file__).parents[2] / "README.md").read_text()
SECTION = README.partition("\n## A first plan\n")[2].partition("\nBy hand, ")[0]
REPOSITORY = "https://git.example.com/acme/fleet.git"


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Clusters]:
    """worker-1 is full, worker-2 has two GPUs and Flux; the Deployment needs no Secret."""
    with ExitStack() as stack:
        both = Clusters(tmp_path, stack)
        both.other.documents |= FLUX
        live = deepcopy(DEPLOYMENT)
        del live["spec"]["template"]["spec"]["containers"][0]["envFrom"]
        both.primary.documents["/apis/apps/v1/namespaces/demo/deployments/vllm"] = live
        yield both


def commands() -> list[list[str]]:
    """Return the words of each command of the section."""
    (block,) = re.findall(r"^```sh clusters\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    return [shlex.split(line, comments=True) for line in block.splitlines()]


def test_four_commands_and_one_answer_lead_from_a_kubeconfig_to_a_plan(clusters: Clusters, tmp_path: Path) -> None:
    clone, *ours = commands()
    assert 1 + len(ours) == 4
    assert clone[:3] == ["git", "clone", REPOSITORY]
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "acme.git")], check=True)
    subprocess.run(["git", "clone", "--quiet", str(tmp_path / "acme.git"), clone[3]], check=True)
    subprocess.run(["git", "-C", clone[3], "remote", "set-url", "origin", REPOSITORY], check=True)
    terminal = Terminal(env={"HOME": str(tmp_path), "KUBECONFIG": str(clusters.kubeconfig)}, runner=PersonRunner())
    printed = []
    for words in ours:
        assert words[0] == "overspill"
        here = ["demo" if word == "serving" else word for word in words[1:]]
        # A question more than the one for the primary finds no answer, and ends the command.
        done = terminal.runner.invoke(main, here, env=terminal.env, input="worker-1\n" if here[0] == "init" else "")
        assert done.exit_code == 0, done.output
        printed.append(done.output)
    init, lend, check = printed
    assert len(re.findall(r"\((?:\S+, )+\S+\): ", init)) == 1
    assert [line.split()[3] for line in lend.splitlines() if line.startswith("Place")] == ["worker-2"]
    assert "0 errors, 0 warnings" in check
    (written,) = re.findall(r"Wrote (\d+) files to ours\.$", init, re.MULTILINE)
    files = [
        path for path in Path("ours").rglob("*") if path.is_file() and ".git" not in path.relative_to("ours").parts
    ]
    assert len(files) == int(written) + len(re.findall(r"^Wrote ours/", lend, re.MULTILINE))
    named = concepts("\n".join([SECTION, *printed]))
    assert len(named) <= MOST, named
    assert {"workspace", "primary cluster", "placement"} <= named
