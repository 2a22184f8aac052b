"""Completion knows commands, options and the names of the fleet, from this disk alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.cli import main
from tests.builders.remote import Remote
from tests.cli.conftest import Terminal

ROOT = Path(__file__).parents[2]
BLOCK = """\
# A workload in block style, with all that a scan has to step over.
apiVersion: gpr.kubeslice.io/v1alpha1
kind: "WorkloadTemplate"   # quoted
metadata:
  # the name stands below
  labels:
    name: wrong
  name: 'bert'
spec:
  manifestResources:
    - name: wrong
      workspaceName: wrong
      manifest:
        kind: Cluster
        metadata: {name: wrong}
  workspaceName: nlp
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: somebody-elses}
---
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata: {labels: {name: wrong}, name: nlp}
"""
REQUEST = """\
{
  "apiVersion": "gpr.kubeslice.io/v1alpha1",
  "kind": "WorkloadPlacement",
  "metadata": {"name": "bookinfo"},
  "spec": {"workspaceName": "llm"}
}
"""


@pytest.fixture
def complete(overspill: Terminal) -> Callable[[str], list[str]]:
    """Complete the last word of a command line as bash asks for it."""

    def names(line: str) -> list[str]:
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_OVERSPILL_COMPLETE": "bash_complete"}
        result = overspill.runner.invoke(main, [], env={**overspill.env, **asked}, prog_name="overspill")
        assert (result.exit_code, result.stderr) == (0, "")
        return [word.partition(",")[2] for word in result.stdout.split()]

    return names


def test_commands_are_completed_in_the_order_of_the_overview(complete: Callable[[str], list[str]]) -> None:
    assert complete("overspill re") == ["restore", "revert", "release", "reject", "rebalance"]
    assert complete("overspill placements ") == ["create", "delete", "get", "list", "update"]
    assert complete("overspill revert --e") == ["--everywhere"]


def test_workloads_clusters_and_workspaces_are_those_of_the_source_branch(
    complete: Callable[[str], list[str]], fleet: Remote
) -> None:
    fleet.commit(
        "main",
        {"nlp.yaml": BLOCK, "ask.json": REQUEST, ".hidden/x.yaml": BLOCK.replace("bert", "hidden")},
        message="More",
    )
    assert complete("overspill rebalance ") == ["llm/vllm", "nlp/bert"]
    assert complete("overspill rebalance n") == ["nlp/bert"]
    assert complete("overspill explain llm/") == ["llm/bookinfo", "llm/vllm"]
    assert complete("overspill placements update ") == ["bookinfo"]
    assert complete("overspill bootstrap flux --cluster ") == ["worker-1", "worker-2", "worker-3"]
    assert complete("overspill gprs --workspace ") == ["llm", "nlp"]


def test_workload_without_a_workspace_gets_the_only_one(complete: Callable[[str], list[str]], fleet: Remote) -> None:
    fleet.commit("main", {"bert.yaml": BLOCK.partition("---")[0].replace("  workspaceName: nlp\n", "")}, message="More")
    assert complete("overspill rebalance ") == ["llm/bert", "llm/vllm"]


def test_placements_are_those_of_the_output_branch(
    complete: Callable[[str], list[str]], overspill: Terminal, see: Callable[..., None]
) -> None:
    assert complete("overspill revert ") == []
    see()
    overspill.done("once")
    first, second = complete("overspill revert ")
    assert first.startswith("vllm-")
    assert complete(f"overspill revert {first} ") == [second]
    assert complete("overspill extend ") == complete("overspill placements get ") == [first, second]
    assert complete("overspill history ") == ["llm/vllm", first, second]


def test_names_of_a_remote_come_from_the_mirror_that_a_command_has_fetched(
    complete: Callable[[str], list[str]], overspill: Terminal, fleet: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    overspill.done("status")
    shutil.move(fleet.path, f"{fleet.path}.away")
    assert complete("overspill rebalance ") == ["llm/vllm"]
    (Path(overspill.env["OVERSPILL_CACHE_DIR"])).chmod(0o777)  # others could have put a configuration there
    assert complete("overspill rebalance ") == []


def test_names_come_from_the_checkout_that_a_person_stands_in(
    complete: Callable[[str], list[str]],
    overspill: Terminal,
    fleet: Remote,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del overspill.env["OVERSPILL_REPO"]
    monkeypatch.delenv("OVERSPILL_REPO", raising=False)
    subprocess.run(["git", "clone", "-q", fleet.url, tmp_path / "checkout"], check=True)
    shutil.move(fleet.path, f"{fleet.path}.away")
    assert complete("overspill rebalance ") == []
    monkeypatch.chdir(tmp_path / "checkout")
    assert complete("overspill rebalance ") == ["llm/vllm"]


@pytest.mark.parametrize("repo", ["/nowhere", "https://127.0.0.1:1/fleet.git", "ext::sh -c false", "-x", ""])
def test_without_a_repository_on_this_disk_there_are_no_names_and_no_complaints(
    complete: Callable[[str], list[str]], overspill: Terminal, repo: str
) -> None:
    overspill.env["OVERSPILL_REPO"] = repo
    assert complete("overspill rebalance ") == complete("overspill revert ") == []


def test_broken_files_leave_out_their_names_alone(complete: Callable[[str], list[str]], fleet: Remote) -> None:
    broken = {
        "a.json": '{"kind": "WorkloadTemplate"',
        "b.yaml": "kind: WorkloadTemplate\nmetadata: [}",
        "c.yaml": BLOCK,
    }
    fleet.commit("main", broken, message="Break")
    assert complete("overspill rebalance ") == ["llm/vllm", "nlp/bert"]


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nosort -F _overspill_completion overspill"),
        ("zsh", "#compdef overspill"),
        ("fish", "complete --no-files --command overspill"),
    ],
)
def test_script_of_a_shell_is_printed(overspill: Terminal, shell: str, line: str) -> None:
    script = overspill.done("completion", shell)
    assert line in script
    assert f"_OVERSPILL_COMPLETE={shell}_complete" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_by_the_script(overspill: Terminal, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "overspill"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom reconciler.cli import main\nmain()\n")
    program.chmod(0o755)
    script = """\
source <(overspill completion bash)
COMP_WORDS=(overspill explain llm/) COMP_CWORD=2
_overspill_completion overspill
echo "${COMPREPLY[@]}"
"""
    env = {
        **os.environ,
        **overspill.env,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(["bash", "--norc", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("llm/vllm\n", "")
