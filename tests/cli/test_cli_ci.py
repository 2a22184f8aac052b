"""`init --ci`: pipelines whose own steps are run here, with the tools of their hosts stood in for."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from reconciler.adapters.recording_files import RecordingFiles
from reconciler.cli.actions.plans.markdown import MARKER
from reconciler.cli.actions.setup.init import WORKFLOWS
from tests.builders.daemon import OWNER, Daemon
from tests.builders.kube_objects import node, pod, workload
from tests.builders.passes import SOURCE_FILES, Passes
from tests.builders.remote import Remote
from tests.cli.conftest import Terminal
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving
from tests.fakes.loopback import LoopbackHandler, LoopbackServer
from tests.fakes.memory_repository import MemoryRepository
from tests.fakes.warm_command import overspill

ROOT = Path(__file__).parents[2]
BROKEN = {"policies.yaml": SOURCE_FILES["policies.yaml"].replace("window: 30s", "window: soon", 1)}
GH = """\
#!/bin/sh
echo "$*" >> "$CALLS"
body="${*##*body=@}"
case "$*" in
  */zip) cat "$RECORDED" ;;
  *--jq*) shift 4; jq -r "$1" "$COMMENTS" ;;
  *body=@*) cat "$body" > "$POSTED" ;;
esac
"""


@pytest.fixture
def terminal() -> Terminal:
    return Terminal(env={})


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Path]:
    """worker-1 full, with three pods that wait, and worker-2 and worker-3 with eight GPUs; returns their kubeconfig."""
    with ExitStack() as stack:
        named = []
        for number, gpus in enumerate((1, 8, 8), start=1):
            cluster = Cluster()
            stack.enter_context(serving(cluster))
            cluster.put("nodes", node("gpu-1", gpus))
            if number == 1:
                cluster.put("deployments", workload("vllm", 4))
                cluster.put("replicasets", workload("vllm-1", owner=("Deployment", "vllm")))
                cluster.put("pods", pod("vllm-1-a", on="gpu-1"))
                for index in range(3):
                    cluster.put("pods", pod(f"vllm-1-{index}", waits="0/1 nodes are available: 1 Insufficient gpu."))
            named.append((f"worker-{number}", cluster.url))
        yield kubeconfig(tmp_path / "kubeconfig", *named)


class Runner:
    """A runner of a git host: a clone of the pull request's branch, and stand-ins for the host's tools."""

    def __init__(self, path: Path, remote: Remote) -> None:
        self.path, self.work = path, path / "work"
        subprocess.run(["git", "clone", "--quiet", remote.url, str(self.work)], check=True)
        tools = path / "tools"
        tools.mkdir()
        for name, text in (("gh", GH), ("overspill", f'#!/bin/sh\nexec {shlex.join(overspill())} "$@"\n')):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        self.calls, self.comments = path / "calls", path / "comments"
        self.calls.touch()
        self.comments.write_text("[]")
        self.posted = path / "posted.md"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OVERSPILL_")}
        self.env = {
            **inherited,
            "PATH": os.pathsep.join((str(tools), os.environ["PATH"])),
            "CALLS": str(self.calls),
            "COMMENTS": str(self.comments),
            "POSTED": str(self.posted),
            "OUTPUT_BRANCH": "placements",
            "GITHUB_OUTPUT": str(path / "output"),
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_RUN_ID": "42",
            "RUNNER_TEMP": str(path),
            "GITHUB_STEP_SUMMARY": str(path / "summary.md"),
            "GITHUB_REPOSITORY": "acme/fleet",
            "PULL_REQUEST": "7",
            "BASE_BRANCH": "main",
            "OVERSPILL_CACHE_DIR": str(path / "cache"),
        }

    def run(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a script as GitHub does."""
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.work, env=self.env | env, check=False, capture_output=True, text=True,
        )  # fmt: skip # a command line, word by word


@pytest.fixture
def runner(tmp_path: Path, fleet: Remote) -> Runner:
    (tmp_path / "runner").mkdir()
    return Runner(tmp_path / "runner", fleet)


def pipeline(terminal: Terminal, tmp_path: Path, host: str, path: str) -> Any:
    terminal.done("init", str(tmp_path / "new"), "--ci", host)
    return yaml.safe_load((tmp_path / "new" / path).read_text())


@pytest.fixture
def steps(terminal: Terminal, tmp_path: Path) -> dict[str, str]:
    """Return the scripts of GitHub's pipeline by their name."""
    workflow = pipeline(terminal, tmp_path, "github", ".github/workflows/overspill.yaml")
    return {step["name"]: step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step}


def test_a_new_fleet_has_the_pipeline_beside_it_and_check_is_content(terminal: Terminal, tmp_path: Path) -> None:
    for host, path in WORKFLOWS.items():
        terminal.done("init", str(tmp_path / host), "--ci", host)
        assert (tmp_path / host / path).is_file()
        assert "0 errors, 0 warnings" in terminal.done("check", str(tmp_path / host))
        assert "holds the" in terminal.done("init", str(tmp_path / host), "--ci", host)


def test_a_fleet_that_has_begun_gets_the_pipeline_alone(terminal: Terminal, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    terminal.done("init", str(fleet))
    (fleet / "clusters" / "worker-1.yaml").unlink()
    (fleet / "clusters" / "ours.yaml").write_text("{}\n")
    before = {path for path in fleet.rglob("*") if path.is_file()}
    assert terminal.done("init", str(fleet), "--ci", "github") == f"Wrote {fleet}/.github/workflows/overspill.yaml.\n"
    assert {path for path in fleet.rglob("*") if path.is_file()} - before == {
        fleet / ".github" / "workflows" / "overspill.yaml"
    }
    (fleet / ".github" / "workflows" / "overspill.yaml").write_text("on: push\n")
    refused = terminal("init", str(fleet), "--ci", "github")
    assert refused.exit_code == 1
    assert "overspill.yaml is there already (take it away first" in refused.stderr


def test_the_hook_before_a_commit_checks_the_whole_fleet(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = pipeline(terminal, tmp_path, "pre-commit", ".pre-commit-config.yaml")
    (published,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (written,) = configuration["repos"][0]["hooks"]
    same = ("id", "entry", "pass_filenames", "always_run")
    assert [written[name] for name in same] == [published[name] for name in same]
    program, *arguments = written["entry"].split()
    assert (program, written["pass_filenames"]) == ("overspill", False)
    monkeypatch.chdir(tmp_path / "new")
    assert "0 errors, 0 warnings" in terminal.done(*arguments)
    next(Path("policies").glob("*.yaml")).write_text(BROKEN["policies.yaml"])
    assert terminal(*arguments).exit_code == 1


def test_errors_are_annotated_at_their_lines(runner: Runner, steps: dict[str, str]) -> None:
    assert runner.run(steps["Check"]).returncode == 0
    (runner.work / "policies.yaml").write_text(BROKEN["policies.yaml"])
    done = runner.run(steps["Check"])
    assert done.returncode == 1
    assert "::error file=policies.yaml,line=" in done.stdout


def test_the_plan_of_a_branch_is_commented_once_and_kept_up_to_date(
    runner: Runner, steps: dict[str, str], clusters: Path
) -> None:
    planned = runner.run(steps["Plan"], KUBECONFIG_TEXT=clusters.read_text())
    assert planned.returncode == 0, planned.stderr
    plan = (runner.path / "plan.md").read_text()
    assert "| Place | llm/vllm | worker-2 | 3 |" in plan, plan
    assert (runner.path / "summary.md").read_text() == plan
    assert runner.run(steps["Comment"]).returncode == 0
    assert "--method POST repos/acme/fleet/issues/7/comments" in runner.calls.read_text()
    runner.comments.write_text(
        json.dumps(
            [
                {"id": 1, "user": {"login": "mallory"}, "body": f"{MARKER}\nmine"},
                {"id": 2, "user": {"login": "github-actions[bot]"}, "body": f"see {MARKER}"},
                {"id": 4711, "user": {"login": "github-actions[bot]"}, "body": plan},
                {"id": 4712, "user": {"login": "github-actions[bot]"}, "body": plan},
            ]
        )
    )
    assert runner.run(steps["Comment"]).returncode == 0
    last = runner.calls.read_text().splitlines()[-1]
    assert last.startswith("api --method PATCH repos/acme/fleet/issues/comments/4711 --field body=@")


@pytest.fixture
def asking(tmp_path: Path, running: Daemon) -> Runner:
    """Open a runner that reaches a daemon and no cluster; the branch pr-1 gives a workload that waits a cluster."""
    (tmp_path / "asking").mkdir()
    first = SOURCE_FILES["policies.yaml"].replace(", {name: worker-3}", "")
    running.sight.free["worker-2"], running.sight.missing = 0, 3
    running.edit({"policies.yaml": first})
    running.remote.move("pr-1", running.remote.tip("main") or "")
    running.remote.commit("pr-1", {"policies.yaml": SOURCE_FILES["policies.yaml"]})
    runner = Runner(tmp_path / "asking", running.remote)
    runner.env |= {"OVERSPILL_SERVER": f"http://127.0.0.1:{running.port}", "OVERSPILL_TOKEN": OWNER}
    return runner


def test_runner_that_reaches_no_cluster_has_a_daemon_plan_the_branch(
    terminal: Terminal, tmp_path: Path, asking: Runner, steps: dict[str, str]
) -> None:
    ours = {"HEAD_BRANCH": "pr-1", "HEAD_REPOSITORY": "acme/fleet", "KUBECONFIG_TEXT": ""}
    done = asking.run(steps["Plan"], **ours)
    assert done.returncode == 0, done.stderr
    assert "| Place | llm/vllm | worker-3 | 3 |" in (asking.path / "plan.md").read_text()
    assert (asking.path / "output").read_text() == "planned=true\n"
    assert asking.run(steps["Plan"], **ours | {"HEAD_BRANCH": "nowhere"}).returncode == 1
    (asking.path / "output").unlink()
    assert asking.run(steps["Plan"], **ours | {"HEAD_REPOSITORY": "mallory/fleet"}).returncode == 0
    assert "so no cluster can be seen" in (asking.path / "summary.md").read_text()
    assert not (asking.path / "output").exists()
    plan = pipeline(terminal, tmp_path, "gitlab", ".gitlab-ci.yml")["overspill-plan"]
    merged = {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7", "CI_MERGE_REQUEST_PROJECT_ID": "7"}
    done = asking.run("\n".join(plan["script"]), CI_MERGE_REQUEST_SOURCE_BRANCH_NAME="pr-1", **merged)
    assert done.returncode == 0, done.stderr
    assert "| Place | llm/vllm | worker-3 | 3 |" in (asking.work / plan["artifacts"]["paths"][0]).read_text()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Record a pass of a daemon, in which three replicas are missing."""
    directory, passes = tmp_path / "passes", Passes(MemoryRepository(SOURCE_FILES))
    files = RecordingFiles(directory)
    passes.recording = files
    passes.missing = 3
    passes.run_once()
    files.close()
    return directory


def edit_the_policy(runner: Runner) -> None:
    """Commit a policy that goes to worker-3 alone, as the host has a pull request checked out: on no branch."""
    policies = runner.work / "policies.yaml"
    policies.write_text(policies.read_text().replace("{name: worker-2}, ", ""))
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    for command in (("checkout", "--quiet", "--detach"), (*identity, "commit", "--quiet", "--all", "-m", "Edit")):
        subprocess.run(["git", *command], cwd=runner.work, check=True)


def test_the_comment_compares_the_branches_on_the_newest_recording(
    runner: Runner, steps: dict[str, str], recording: Path
) -> None:
    edit_the_policy(runner)
    (runner.path / "tools" / "python").symlink_to(sys.executable)
    archive = shutil.make_archive(str(runner.path / "artifact"), "zip", recording)
    run = {"repository_id": 1, "head_repository_id": 1}
    listed = [(1, True, run), (2, False, run | {"head_repository_id": 2}), (3, False, run), (4, False, run)]
    artifacts = [{"id": number, "expired": expired, "workflow_run": run} for number, expired, run in listed]
    runner.comments.write_text(json.dumps({"artifacts": artifacts}))
    named = {"RECORDING": "", "RECORDING_ARTIFACT": "passes", "RECORDED": archive}
    (runner.path / "plan.md").write_text(f"{MARKER}\nthe plan\n")
    done = runner.run(steps["Compare"], **named)
    assert done.returncode == 0, done.stderr
    assert "actions/artifacts/3/zip" in runner.calls.read_text()
    comment = (runner.path / "plan.md").read_text()
    assert comment.startswith(f"{MARKER}\nthe plan\n\n### What `pull-request-7` would have changed\n")
    assert "burst(llm/vllm): 3 replicas on worker-3" in comment
    assert (runner.path / "output").read_text() == "compared=true\n"
    runner.comments.write_text('{"artifacts": []}')
    assert "::warning::No comparison: there is no artifact passes." in runner.run(steps["Compare"], **named).stdout


def test_a_comparison_without_a_plan_is_a_comment_too(runner: Runner, steps: dict[str, str], recording: Path) -> None:
    edit_the_policy(runner)
    done = runner.run(steps["Compare"], RECORDING=str(recording), RECORDING_ARTIFACT="")
    assert done.returncode == 0, done.stderr
    assert (runner.path / "plan.md").read_text().startswith(f"{MARKER}\n\n### What `pull-request-7`")


def test_without_the_secret_there_is_no_plan_and_no_comment(runner: Runner, steps: dict[str, str]) -> None:
    assert runner.run(steps["Plan"], KUBECONFIG_TEXT="").returncode == 0
    assert "OVERSPILL_KUBECONFIG is not set" in (runner.path / "summary.md").read_text()
    assert not (runner.path / "output").exists()


@pytest.mark.parametrize("written", [True, False])
def test_a_plan_that_fails_is_told_in_the_comment(runner: Runner, steps: dict[str, str], *, written: bool) -> None:
    (runner.path / "tools" / "overspill").write_text("#!/bin/sh\nexit 3\n")
    assert runner.run(steps["Plan"], KUBECONFIG_TEXT="{}").returncode == 3
    if not written:
        (runner.path / "plan.md").unlink()
    assert (runner.path / "output").read_text() == "planned=true\n"
    runner.comments.write_text(json.dumps([{"id": 5, "user": {"login": "github-actions[bot]"}, "body": MARKER}]))
    done = runner.run(steps["Comment"])
    assert done.returncode == 0, done.stderr
    assert "--method PATCH repos/acme/fleet/issues/comments/5" in runner.calls.read_text()
    posted = runner.posted.read_text()
    assert posted.startswith(f"{MARKER}\n### Overspill plan: failed\n")
    assert "https://github.example/acme/fleet/actions/runs/42" in posted


def test_comments_that_cannot_be_read_fail_the_step(runner: Runner, steps: dict[str, str]) -> None:
    (runner.path / "tools" / "gh").write_text("#!/bin/sh\nexit 1\n")
    assert runner.run(steps["Comment"]).returncode == 1


def test_only_the_job_that_installs_nothing_may_write(terminal: Terminal, tmp_path: Path) -> None:
    workflow = pipeline(terminal, tmp_path, "github", ".github/workflows/overspill.yaml")
    installing, writing = workflow["jobs"]["overspill"], workflow["jobs"]["comment"]
    assert workflow["permissions"] == {"actions": "read", "contents": "read"}
    assert "permissions" not in installing
    assert writing["permissions"] == {"pull-requests": "write"}
    assert writing["needs"] == "overspill"
    assert not any("pip" in step.get("run", "") or "checkout" in step.get("uses", "") for step in writing["steps"])
    assert workflow["defaults"]["run"]["shell"] == "bash"


def test_an_empty_package_fails_the_first_step_with_a_sentence(
    terminal: Terminal, tmp_path: Path, runner: Runner, steps: dict[str, str]
) -> None:
    jobs = pipeline(terminal, tmp_path, "gitlab", ".gitlab-ci.yml")
    workflow = pipeline(terminal, tmp_path, "github", ".github/workflows/overspill.yaml")
    assert (workflow["env"]["PACKAGE"], jobs["variables"]["PACKAGE"]) == ("", "")
    first = workflow["jobs"]["overspill"]["steps"][0]["run"]
    for script in (first, *(jobs[name]["before_script"][0] for name in ("overspill-check", "overspill-plan"))):
        done = runner.run(script, PACKAGE="")
        assert done.returncode == 1
        assert "PACKAGE is empty (write in the pipeline's file" in done.stdout + done.stderr
        assert runner.run(script, PACKAGE="overspill==1.0.0").returncode == 0


def test_gitlab_tells_an_output_branch_that_is_absent_from_one_that_cannot_be_read(
    terminal: Terminal, tmp_path: Path, runner: Runner, clusters: Path
) -> None:
    script = "\n".join(pipeline(terminal, tmp_path, "gitlab", ".gitlab-ci.yml")["overspill-plan"]["script"])
    absent = runner.run(script, OVERSPILL_KUBECONFIG=str(clusters), OUTPUT_BRANCH="not-begun")
    assert absent.returncode == 0, absent.stderr
    assert "has not begun" in absent.stdout
    subprocess.run(["git", "remote", "set-url", "origin", str(tmp_path / "gone")], cwd=runner.work, check=True)
    failed = runner.run(script, OVERSPILL_KUBECONFIG=str(clusters))
    assert failed.returncode == 1
    assert "The output branch placements cannot be read" in failed.stderr


def test_gitlab_has_a_report_of_tests_a_plan_and_a_comparison(
    terminal: Terminal, tmp_path: Path, runner: Runner, clusters: Path, recording: Path
) -> None:
    jobs = pipeline(terminal, tmp_path, "gitlab", ".gitlab-ci.yml")
    check, plan = jobs["overspill-check"], jobs["overspill-plan"]
    assert runner.run("\n".join(check["script"])).returncode == 0
    assert "<testsuites>" in (runner.work / check["artifacts"]["reports"]["junit"]).read_text()
    assert json.loads((runner.work / check["artifacts"]["reports"]["codequality"]).read_text()) == []
    edit_the_policy(runner)
    archive = shutil.make_archive(str(runner.path / "artifacts"), "zip", recording.parent, recording.name)
    curl = runner.path / "tools" / "curl"
    curl.write_text(f'#!/bin/sh\necho "$*" >> "$CALLS"\ncp {archive} recording.zip\n')
    curl.chmod(0o755)
    (runner.path / "tools" / "python").symlink_to(sys.executable)
    done = runner.run(
        "\n".join(plan["script"]), OVERSPILL_KUBECONFIG=str(clusters), RECORDING="passes", RECORDING_JOB="nightly",
        CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main", CI_MERGE_REQUEST_IID="7", CI_DEFAULT_BRANCH="main",
        CI_JOB_TOKEN="token", CI_API_V4_URL="https://gitlab.example/api/v4", CI_PROJECT_ID="42",
    )  # fmt: skip # a script and its variables
    assert done.returncode == 0, done.stderr
    address = "https://gitlab.example/api/v4/projects/42/jobs/artifacts/main/download?job=nightly"
    assert runner.calls.read_text().split()[-1] == address
    assert "### What `merge-request-7` would have changed" in (runner.work / "overspill-plan.md").read_text()
    assert "| Place | llm/vllm | worker-3 | 3 |" in (runner.work / plan["artifacts"]["paths"][0]).read_text()


class GitLab(LoopbackServer):
    """The part of GitLab's REST API that comments: two notes a page, of three people."""

    def __init__(self, bodies: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(_GitLabHandler)
        self.notes = [
            {"id": number, "author": {"id": author}, "body": body} for number, (author, body) in enumerate(bodies, 1)
        ]

    @property
    def api(self) -> str:
        return f"{self.url}/api/v4"


class _GitLabHandler(LoopbackHandler):
    server: GitLab
    NOTES = "/api/v4/projects/42/merge_requests/7/notes"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if self.headers["PRIVATE-TOKEN"] != "token-of-the-bot":
            self.send_error(401)
        elif url.path == "/api/v4/user":
            self.reply_json(200, {"id": 3})
        else:
            assert url.path == self.NOTES
            page = int(parse_qs(url.query)["page"][0])
            more = str(page + 1) if len(self.server.notes) > 2 * page else ""
            self.reply_json(200, self.server.notes[2 * page - 2 : 2 * page], {"X-Next-Page": more})

    def do_POST(self) -> None:
        assert self.path == self.NOTES
        self.server.notes.append({"id": 99, "author": {"id": 3}, "body": self._body()})
        self.reply_json(200, {})

    def do_PUT(self) -> None:
        (note,) = [note for note in self.server.notes if self.path == f"{self.NOTES}/{note['id']}"]
        note["body"] = self._body()
        self.reply_json(200, {})

    def _body(self) -> Any:
        return json.loads(self.body())["body"]


def comment(terminal: Terminal, tmp_path: Path, runner: Runner, host: GitLab, token: str) -> int:
    """Run GitLab's job that comments; returns its exit code."""
    job = pipeline(terminal, tmp_path, "gitlab", ".gitlab-ci.yml")["overspill-comment"]
    if not (python := runner.path / "tools" / "python").exists():
        python.symlink_to(sys.executable)
    return runner.run(
        "\n".join(job["script"]), CI_API_V4_URL=host.api, CI_MERGE_REQUEST_PROJECT_ID="42", CI_MERGE_REQUEST_IID="7",
        CI_PIPELINE_URL="https://gitlab.example/acme/fleet/-/pipelines/1", COMMENT_TOKEN=token,
    ).returncode  # fmt: skip # a script and its variables


def test_gitlab_has_one_comment_that_is_kept_up_to_date(terminal: Terminal, tmp_path: Path, runner: Runner) -> None:
    others = ((1, f"{MARKER} of another"), (3, f"see {MARKER}"), (2, "fine"))
    with GitLab(others) as host:
        for plan in ("first", "second"):
            (runner.work / "overspill-plan.md").write_text(f"{MARKER}\nthe {plan} plan\n")
            shutil.rmtree(tmp_path / "new", ignore_errors=True)
            assert comment(terminal, tmp_path, runner, host, "token-of-the-bot") == 0
            assert [note["body"] for note in host.notes[3:]] == [f"{MARKER}\nthe {plan} plan\n"]
        assert [note["body"] for note in host.notes[:3]] == [body for _, body in others]


def test_a_plan_that_fails_is_told_in_gitlab_s_comment(terminal: Terminal, tmp_path: Path, runner: Runner) -> None:
    with GitLab() as host:
        assert comment(terminal, tmp_path, runner, host, "token-of-the-bot") == 0
        (note,) = host.notes
        assert str(note["body"]).startswith(f"{MARKER}\n### Overspill plan: failed\n")
        assert "https://gitlab.example/acme/fleet/-/pipelines/1" in str(note["body"])


def test_a_token_that_may_not_comment_fails_the_job(terminal: Terminal, tmp_path: Path, runner: Runner) -> None:
    with GitLab() as host:
        assert comment(terminal, tmp_path, runner, host, "another") == 1


def test_gitlab_comments_where_there_is_a_plan_and_nowhere_else(terminal: Terminal, tmp_path: Path) -> None:
    jobs = pipeline(terminal, tmp_path, "gitlab", ".gitlab-ci.yml")
    planned = [{*rule["if"].split(" && ")} for rule in jobs["overspill-plan"]["rules"]]
    commented = [{*rule["if"].split(" && ")} for rule in jobs["overspill-comment"]["rules"]]
    assert [each - {"$COMMENT_TOKEN"} for each in commented] == planned
