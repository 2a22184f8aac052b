"""`init`, `check`, `schema` and `bootstrap`: the fleet repository as files."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from reconciler.core.schema import KINDS
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import Terminal

LAYOUT = Path(__file__).parents[2] / "repo-layout"


@pytest.fixture
def terminal() -> Terminal:
    """Open a terminal that knows of no repository."""
    return Terminal(env={})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Lay the fleet out in a directory outside git."""
    directory = tmp_path / "fleet"
    directory.mkdir()
    for path, text in SOURCE_FILES.items():
        (directory / path).write_text(text)
    return directory


def test_init_copies_the_layout_whole(terminal: Terminal, tmp_path: Path) -> None:
    assert "overspill check" in terminal.done("init", str(tmp_path / "new" / "fleet"))
    layout = {path.relative_to(LAYOUT): path.read_bytes() for path in LAYOUT.rglob("*") if path.is_file()}
    copy = tmp_path / "new" / "fleet"
    assert {path.relative_to(copy): path.read_bytes() for path in copy.rglob("*") if path.is_file()} == layout


def test_the_page_tells_how_many_files_init_writes(terminal: Terminal, tmp_path: Path) -> None:
    (told,) = re.findall(r"^Wrote (\d+) files to ", terminal.done("init", str(tmp_path / "fleet")), re.MULTILINE)
    page = (LAYOUT.parent / "docs" / "reference" / "cli.md").read_text()
    assert f"Wrote {told} files to fleet.\n" in page


def test_what_init_wrote_passes_check(terminal: Terminal, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    terminal.done("init", str(fleet))
    assert terminal.done("check", str(fleet)).endswith(": 0 errors, 0 warnings\n")
    above = terminal("check", str(tmp_path))
    assert above.exit_code == 1
    assert f"no fleet repository begins here, but in fleet (try `overspill check {fleet}`)" in above.stderr


@pytest.mark.parametrize("words", [("check",), ("lend", "deployment/vllm", "--fleet")])
def test_a_path_that_is_not_there_is_named_with_the_nearest(
    terminal: Terminal, files: Path, words: tuple[str, ...]
) -> None:
    result = terminal(*words, str(files.with_name("fleeet")))
    assert (result.exit_code, f"does not exist (try '{files}')." in result.stderr) == (2, True)


def test_first_plan_of_what_init_wrote_bursts_and_holds_nothing_back(terminal: Terminal, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    terminal.done("init", str(fleet), "--git")
    (seen,) = re.findall(r'observedAt: "(.*)"', (LAYOUT / "observations" / "worker-1.yaml").read_text())
    plan = terminal.answer("plan", "--repo", str(fleet), "--observations", str(fleet / "observations"), "--at", seen)
    assert [commit["change"]["action"] for commit in plan["commits"] if commit["change"]] == ["Place"]
    assert plan["suppressed"] == []


def test_init_with_git_commits_everything_to_main(terminal: Terminal, tmp_path: Path) -> None:
    terminal.env |= {
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "ann@example.com",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_COMMITTER_EMAIL": "ann@example.com",
    }
    terminal.done("init", str(tmp_path / "fleet"), "--git")
    remote = Remote(tmp_path / "fleet" / ".git")
    assert remote.subjects("main") == ["Begin the fleet repository"]
    assert len(remote.files("main")) == sum(path.is_file() for path in LAYOUT.rglob("*"))


NOBODY = {
    "GIT_AUTHOR_NAME": "",
    "GIT_AUTHOR_EMAIL": "",
    "GIT_COMMITTER_NAME": "",
    "GIT_COMMITTER_EMAIL": "",
    "EMAIL": "",
}


def test_init_commits_without_an_identity_of_git(terminal: Terminal, tmp_path: Path) -> None:
    terminal.env |= NOBODY
    printed = terminal.done("init", str(tmp_path / "fleet"), "--git")
    assert "the author of that commit is Overspill" in printed
    people = Remote(tmp_path / "fleet" / ".git").git("log", "--format=%an <%ae> %cn <%ce>", "main")
    assert people == "Overspill <overspill@overspill.dev> Overspill <overspill@overspill.dev>"


def test_init_passes_on_what_git_says_and_goes_on_afterwards(terminal: Terminal, tmp_path: Path) -> None:
    terminal.env |= NOBODY
    fleet, template = tmp_path / "fleet", tmp_path / "template"
    hook = template / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\necho 'no commits on Fridays' >&2\nexit 1\n")
    hook.chmod(0o755)
    terminal.env["GIT_TEMPLATE_DIR"] = str(template)
    result = terminal("init", str(fleet), "--git")
    assert result.exit_code == 1
    assert f"error: git commit in {fleet}: no commits on Fridays" in result.stderr
    assert "Traceback" not in result.stderr
    for path in (hook, fleet / ".git" / "hooks" / "pre-commit"):
        path.unlink()
    terminal.done("init", str(fleet), "--git")
    assert Remote(fleet / ".git").subjects("main") == ["Begin the fleet repository"]


def test_init_goes_on_where_it_was_broken_off(terminal: Terminal, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    layout = sorted(path.relative_to(LAYOUT) for path in LAYOUT.rglob("*") if path.is_file())
    for path in layout[:5]:
        (fleet / path).parent.mkdir(parents=True, exist_ok=True)
        (fleet / path).write_bytes((LAYOUT / path).read_bytes())
    (fleet / layout[5]).with_name(f".{layout[5].name}.partial").write_text("half of")
    terminal.done("init", str(fleet), "--git")
    assert (
        sorted(path.relative_to(fleet) for path in fleet.rglob("*") if path.is_file() and ".git" not in path.parts)
        == layout
    )
    assert "already" in terminal.done("init", str(fleet), "--git")
    assert len(Remote(fleet / ".git").subjects("main")) == 1


def test_init_leaves_changed_files_alone(terminal: Terminal, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    terminal.done("init", str(fleet), "--git")
    (fleet / "clusters" / "worker-1.yaml").write_text("# mine\n")
    (fleet / "fleet.yaml").unlink()
    result = terminal("init", str(fleet), "--git")
    assert (result.exit_code, "it holds clusters/worker-1.yaml" in result.stderr) == (1, True)
    assert (fleet / "clusters" / "worker-1.yaml").read_text() == "# mine\n"
    assert not (fleet / "fleet.yaml").exists()


def test_init_refuses_a_directory_that_is_not_empty(terminal: Terminal, files: Path) -> None:
    before = sorted(files.iterdir())
    result = terminal("init", str(files))
    assert (result.exit_code, sorted(files.iterdir())) == (1, before)
    assert "is not empty: it holds clusters.yaml" in result.stderr
    (copy,) = re.findall(r"here: `(cp .*)`", result.stderr)
    (files / "README.md").write_text("# Ours\n")
    terminal.done("init", str(files.with_name("new")))
    # Some versions of cp end with 1 where they leave a file as it is.
    subprocess.run(["sh", "-uc", copy.replace("NEW", str(files.with_name("new")))], check=False)
    assert (files / "bootstrap").is_dir()
    assert (files / "README.md").read_text() == "# Ours\n"


def test_init_names_what_is_in_the_way_and_not_what_is_allowed(terminal: Terminal, files: Path) -> None:
    Remote(files / ".git")
    assert "it holds clusters.yaml" in terminal("init", str(files)).stderr


def test_init_takes_a_fresh_clone(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    Remote(tmp_path / "clone" / ".git")
    terminal.done("init", str(tmp_path / "clone"))
    assert (tmp_path / "clone" / "fleet.yaml").exists()


def test_check_counts_what_it_finds(terminal: Terminal, files: Path) -> None:
    assert terminal.done("check", str(files)) == (
        "5 files, 3 clusters, 1 workspace, 1 template, 1 policy: 0 errors, 0 warnings\n"
    )


def test_check_takes_the_current_directory(terminal: Terminal, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "policies.yaml").write_text(SOURCE_FILES["policies.yaml"].replace("1h", "'1 hour'"))
    monkeypatch.chdir(files)
    assert terminal("check").stdout.startswith("policies.yaml:9: spec.hold: ")


def test_check_tells_all_problems_of_all_files_at_once(terminal: Terminal, files: Path) -> None:
    (files / "policies.yaml").write_text(SOURCE_FILES["policies.yaml"].replace("1h", "'1 hour'").replace("30s", "soon"))
    (files / "workspaces.yaml").write_text(SOURCE_FILES["workspaces.yaml"].replace("worker-3", "worker-9"))
    result = terminal("check", str(files))
    told = [line.removeprefix(f"{files}/") for line in result.stdout.splitlines() if line.startswith(str(files))]
    assert result.exit_code == 1
    assert [line.split(": ")[:2] for line in told[:3]] == [
        ["policies.yaml:6", "spec.scaleUp.window"],
        ["policies.yaml:9", "spec.hold"],
        ["workspaces.yaml:4", "spec.clusters[2]"],
    ]
    assert "3 errors" in result.stdout.splitlines()[-1]


def test_check_of_a_file_tells_its_own_problems_as_its_repository_has_them(
    terminal: Terminal, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "fleet.yaml").write_text(
        "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: ours}\nspec: {}\n"
    )
    (files / "policies.yaml").write_text(SOURCE_FILES["policies.yaml"].replace("1h", "'1 hour'"))
    (files / "workspaces.yaml").write_text(SOURCE_FILES["workspaces.yaml"].replace("worker-3", "worker-9"))
    result = terminal("check", str(files / "workspaces.yaml"))
    first, *_, tally, others = result.stdout.splitlines()
    assert result.exit_code == 1
    assert first.startswith(f"{files}/workspaces.yaml:4: spec.clusters[2]: no file describes Cluster worker-9")
    assert tally == f"{files}/workspaces.yaml: 1 error, 0 warnings"
    assert others == f"In other files: 1 error, 0 warnings (`overspill check {files}` tells them)"
    assert terminal("check", str(files / "template.yaml")).exit_code == 0
    answer = json.loads(terminal("check", str(files / "policies.yaml"), "-o", "json").stdout)
    assert [(problem["field"], problem["line"]) for problem in answer["problems"]] == [("spec.hold", 9)]
    (files / "below").mkdir()
    monkeypatch.chdir(files / "below")
    assert terminal("check", "../policies.yaml").stdout.startswith("../policies.yaml:9: spec.hold: ")


@pytest.mark.parametrize("marked", [True, False], ids=["with a Fleet", "by its folders"])
def test_check_of_a_directory_in_a_fleet_tells_its_own_problems_as_the_repository_has_them(
    terminal: Terminal, files: Path, monkeypatch: pytest.MonkeyPatch, marked: bool
) -> None:
    for kind in ("policies", "clusters", "workspaces"):
        (files / kind).mkdir()
        (files / f"{kind}.yaml").rename(files / kind / "all.yaml")
    (files / "fleet.yaml").unlink(missing_ok=True)
    if marked:
        (files / "fleet.yaml").write_text(SOURCE_FILES["fleet.yaml"])
    assert terminal.done("check", str(files / "policies")).endswith(f"{files}/policies: 0 errors, 0 warnings\n")
    broken = SOURCE_FILES["policies.yaml"].replace("1h", "'1 hour'")
    (files / "policies" / "all.yaml").write_text(broken)
    workspaces = (files / "workspaces" / "all.yaml").read_text()
    (files / "workspaces" / "all.yaml").write_text(workspaces.replace("worker-3", "worker-9"))
    result = terminal("check", str(files / "policies"))
    first, *_, tally, others = result.stdout.splitlines()
    assert result.exit_code == 1
    assert first.startswith(f"{files}/policies/all.yaml:9: spec.hold: ")
    assert tally == f"{files}/policies: 1 error, 0 warnings"
    assert others == f"In other files: 1 error, 0 warnings (`overspill check {files}` tells them)"
    monkeypatch.chdir(files / "policies")
    assert terminal("check").stdout.startswith("all.yaml:9: spec.hold: ")
    assert terminal("check", "../workspaces").stdout.startswith("../workspaces/all.yaml:4: ")
    (files / "docs").mkdir()
    assert "no file of a fleet repository is in here" in terminal("check", str(files / "docs")).stderr


@pytest.mark.parametrize("content", ["", "a: 1"], ids=["as a hole", "foreign"])
def test_a_file_that_is_too_large_is_not_read_as_the_daemon_has_it(
    terminal: Terminal, files: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    for name in ("large.yaml", "large.yaml.orig"):
        (files / name).write_text(content)
        os.truncate(files / name, 16 << 30)
    whole = Path.read_bytes
    monkeypatch.setattr(
        Path, "read_bytes", lambda path: pytest.fail(path.name) if "large" in path.name else whole(path)
    )
    result = terminal("check", str(files))
    assert result.exit_code == 1
    (told,) = (line for line in result.stdout.splitlines() if "large" in line)
    assert told.startswith(f"{files}/large.yaml: is 16384.0 MB; files over 1 MiB are not read (try splitting it")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fleet/README.md", "README.md is not read: objects are in *.yaml, *.yml and *.json"),
        ("fleet/.hidden/policy.yaml", "policy.yaml is not read: objects are in"),
        ("fleet/link.yaml", "link.yaml is not read: links and special files are passed over"),
        (
            "alone.yaml",
            "alone.yaml is in no fleet repository: no directory above it holds fleet.yaml or .git (try `over",
        ),
    ],
)
def test_check_of_a_file_that_no_daemon_reads_says_so(
    terminal: Terminal, files: Path, tmp_path: Path, name: str, message: str
) -> None:
    (files / ".git").mkdir()
    (files / ".hidden").mkdir()
    (files / "link.yaml").symlink_to("policies.yaml")
    for path in ("fleet/README.md", "fleet/.hidden/policy.yaml", "alone.yaml"):
        (tmp_path / path).write_text(SOURCE_FILES["policies.yaml"])
    result = terminal("check", str(tmp_path / name))
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr


def test_check_keeps_warnings_apart_and_exits_with_0(terminal: Terminal, files: Path) -> None:
    (files / "policies.yaml").unlink()
    result = terminal("check", str(files))
    assert result.exit_code == 0
    assert result.stdout.index("Warnings") < result.stdout.index("template.yaml")
    assert result.stdout.endswith("0 policies: 0 errors, 1 warning\n")


def test_check_as_json_holds_counts_and_problems(terminal: Terminal, files: Path) -> None:
    answer = terminal.answer("check", str(files))
    assert answer == {
        "files": 5, "clusters": 3, "workspaces": 1, "templates": 1, "policies": 1,
        "requests": 0, "gprTemplates": 0, "bindings": 0, "limits": 0,
        "kinds": 0, "errors": 0, "warnings": 0, "problems": [], "unread": [], "unchecked": [],
    }  # fmt: skip # a table, a row a line
    (files / "policies.yaml").write_text("apiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\n")
    problem = json.loads(terminal("check", str(files), "-o", "json").stdout)["problems"][0]
    assert set(problem) == {"path", "line", "field", "message", "hint", "severity"}


def test_check_counts_requests_and_what_else_is_of_egs_where_there_is_any(terminal: Terminal, files: Path) -> None:
    head = "apiVersion: gpr.kubeslice.io/v1alpha1\nkind: GPUProvisioningRequest\nmetadata: {name: tuning}\n"
    spec = "spec: {sliceName: llm, preferredClusters: [worker-2], numberOfGPUNodes: 1, exitDuration: 1h}\n"
    policy = "kind: WorkspacePolicy\nmetadata: {name: llm}\nspec: {priorityRange: high}\n"
    (files / "fleet.yaml").write_text(f"{head}{spec}---\napiVersion: gpr.kubeslice.io/v1alpha1\n{policy}")
    last = "1 policy, 1 request, 1 workspace policy: 0 errors, 0 warnings\n"
    assert terminal("check", str(files)).stdout.endswith(last)
    assert terminal.answer("check", str(files))["requests"] == 1


def test_check_of_a_directory_without_a_fleet_says_how_to_begin(terminal: Terminal, tmp_path: Path) -> None:
    result = terminal("check", str(tmp_path))
    assert (result.exit_code, "overspill init" in result.stderr) == (1, True)


def test_check_passes_over_links_and_git_as_the_daemon_does(terminal: Terminal, files: Path) -> None:
    (files / ".git").mkdir()
    (files / ".git" / "x.yaml").write_text("apiVersion: overspill.dev/v1alpha1\nkind: Cluster\n")
    (files / "link.yaml").symlink_to(files / "clusters.yaml")
    assert terminal.answer("check", str(files))["files"] == 5


def test_check_tells_links_and_submodules_among_files_of_ours(terminal: Terminal, files: Path) -> None:
    (files / "templates" / "vendored" / ".git").mkdir(parents=True)
    copy = SOURCE_FILES["template.yaml"].replace("name: vllm", "name: copy", 1)
    (files / "templates" / "vendored" / "copy.yaml").write_text(copy)
    (files / "docs" / "theme" / ".git").mkdir(parents=True)
    (files / "templates" / "link.yaml").symlink_to("vendored/copy.yaml")
    result = terminal.answer("check", str(files))
    assert (result["files"], result["templates"]) == (5, 1)
    told = {Path(problem["path"]).relative_to(files).as_posix(): problem["message"] for problem in result["problems"]}
    assert told == {
        "templates/link.yaml": "is a symbolic link, which is not followed",
        "templates/vendored": "is a submodule, whose files are not read",
    }


def test_check_ignores_what_the_fleet_ignores(terminal: Terminal, files: Path) -> None:
    (files / "charts").mkdir()
    (files / "charts" / "x.yaml").write_text("apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nspec: {a: {{ b }}}\n")
    assert terminal("check", str(files)).exit_code == 1
    (files / "fleet.yaml").write_text(SOURCE_FILES["fleet.yaml"].replace("spec: {", "spec: {ignore: [charts/**], "))
    assert terminal("check", str(files)).exit_code == 0


def test_control_characters_of_a_file_do_not_reach_the_terminal(terminal: Terminal, files: Path) -> None:
    (files / "bad.yaml").write_text('apiVersion: overspill.dev/v1alpha1\nkind: "Clus\\e[31mter"\n')
    result = terminal("check", str(files))
    assert result.exit_code == 1
    assert "\x1b" not in result.output


def test_schema_without_a_kind_lists_the_kinds(terminal: Terminal) -> None:
    assert tuple(terminal.done("schema").split()) == KINDS


def test_page_on_the_command_line_lists_the_kinds_as_they_are_printed(terminal: Terminal) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
    assert f"$ overspill schema\n{terminal.done('schema')}```" in page


def test_schemas_beside_the_layout_are_those_that_are_printed(terminal: Terminal, tmp_path: Path) -> None:
    terminal.done("schema", "--all", "--out", str(tmp_path / "schemas"))
    written = {path.name: path.read_text() for path in (tmp_path / "schemas").iterdir()}
    assert written == {path.name: path.read_text() for path in (LAYOUT / "schemas").iterdir()}
    assert terminal.done("schema", "cluster") == written["Cluster.json"]


def test_all_schemas_need_a_place(terminal: Terminal) -> None:
    assert terminal("schema", "--all").exit_code == 2
    assert terminal("schema", "Teapot").exit_code == 2


def test_bootstrap_prints_a_project_and_an_application_set(overspill: Terminal, fleet: Remote) -> None:
    text = SOURCE_FILES["fleet.yaml"].replace(
        "engine: manifests", "engine: argocd, repoURL: https://git.example.com/f.git"
    )
    fleet.commit("main", {"fleet.yaml": text})
    shown = overspill.done("bootstrap", "argocd", "--output-branch", "bursts")
    assert "kind: AppProject" in shown
    assert "kind: ApplicationSet" in shown
    assert "refs/heads/bursts" in shown


def test_bootstrap_prints_for_flux_what_one_cluster_needs(overspill: Terminal, fleet: Remote) -> None:
    text = SOURCE_FILES["fleet.yaml"].replace(
        "engine: manifests", "engine: flux, repoURL: https://git.example.com/f.git"
    )
    fleet.commit("main", {"fleet.yaml": text})
    shown = overspill.done("bootstrap", "flux", "--cluster", "worker-2", "--output-branch", "bursts")
    assert "sparseCheckout:\n  - clusters/worker-2\n" in shown
    assert "branch: bursts" in shown
    result = overspill("bootstrap", "flux", "--cluster", "worker-7")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no such Cluster is described (try 'worker-" in result.stderr
    fleet.commit(
        "main", {"fleet.yaml": SOURCE_FILES["fleet.yaml"].replace("engine: manifests", "repoURL: https://g/f")}
    )
    result = overspill("bootstrap", "flux", "--cluster", "wroker-2")
    assert "no such Cluster is described (try 'worker-2')" in result.stderr, "its engine is not what is wrong"


def test_bootstrap_tells_what_it_grants_beyond_what_was_applied(
    overspill: Terminal, fleet: Remote, tmp_path: Path
) -> None:
    engine = SOURCE_FILES["fleet.yaml"].replace("engine: manifests", "engine: argocd, repoURL: https://g/f.git")
    first = fleet.commit("main", {"fleet.yaml": engine})
    applied = tmp_path / "applied.yaml"
    applied.write_text(overspill.done("bootstrap", "argocd"))
    wider = SOURCE_FILES["workspaces.yaml"].replace("[demo]", "[demo, default], allowedKinds: [a.b/C, a.b/ClusterC]")
    second = fleet.commit("main", {"workspaces.yaml": wider})
    for since in (str(applied), first, first[:8]):
        head, *shown = overspill.done("bootstrap", "argocd", "--since", since).partition("\n#\n")[0].splitlines()
        assert head == f"# From commit {second[:12]} of main."
        what = since if since == str(applied) else f"commit {first[:12]}"
        assert shown[0] == f"# Granted beyond {what}:"
        assert shown[1:] == [
            *(f"#   + destination worker-{number}, namespace default" for number in (1, 2, 3)),
            "#   + kind /Namespace default of the whole cluster",
            "#   + kind a.b/C",
            "#   + kind a.b/ClusterC of the whole cluster",
        ]
    same = overspill.done("bootstrap", "argocd", "--since", second)
    assert "no more and no less" in same.splitlines()[1]
    result = overspill("bootstrap", "argocd", "--since", "0123abcd")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no file and no commit of the source branch has this name" in result.stderr


@pytest.mark.parametrize("words", [["flux"], ["argocd", "--cluster", "worker-2"]])
def test_bootstrap_takes_a_cluster_for_flux_and_only_for_flux(overspill: Terminal, words: list[str]) -> None:
    result = overspill("bootstrap", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--cluster" in result.stderr


def test_bootstrap_prints_nothing_from_a_broken_fleet(overspill: Terminal, fleet: Remote) -> None:
    fleet.commit("main", {"fleet.yaml": SOURCE_FILES["fleet.yaml"].replace("engine", "motor")})
    result = overspill("bootstrap", "argocd")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: fleet.yaml:4: spec.motor" in result.stderr


PLAIN = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n"
UNREAD = {
    "a plain Deployment": (
        PLAIN,
        "web.yaml:1: holds a plain Deployment, which is not read and goes to no cluster (make it the manifest of a ",
    ),
    "a plain Secret": (SECRET, "web.yaml:1: holds a plain Secret, which is not read and goes to no cluster (take it"),
    "a kind of others": (
        "apiVersion: x.example.com/v1\nkind: Tool\n",
        "web.yaml:1: holds a plain Tool, which is not read and goes to no cluster (add it to a WorkloadTemplate if",
    ),
    "SOPS": (
        "data: ENC[AES256_GCM,data:x]\nsops: {mac: ENC[x]}\n",
        "web.yaml: is encrypted by SOPS, and nothing is read",
    ),
    "broken YAML": ("foo: [1,2\n", "web.yaml:2: is not read, for it is no YAML: did not find expected"),
    "values without a kind": ("replicas: 3\n", "web.yaml:1: is not read, for nothing in it has a kind (add apiVersion"),
}


@pytest.mark.parametrize("folder", ["", "templates/"], ids=["beside files of ours", "in a folder for them"])
@pytest.mark.parametrize(("text", "told"), UNREAD.values(), ids=UNREAD)
def test_a_file_that_is_not_read_is_a_warning_with_the_way_out(
    terminal: Terminal, files: Path, text: str, told: str, folder: str
) -> None:
    (files / folder).mkdir(exist_ok=True)
    (files / folder / "web.yaml").write_text(text)
    printed = terminal.done("check", str(files))
    assert f"fleet/{folder}{told}" in printed
    assert printed.endswith(": 0 errors, 1 warning\n")


@pytest.mark.parametrize("name", ["web.yaml.bak", "web.yaml~", "web.YML.disabled", "web.ymal", "web.json.txt"])
def test_a_file_of_ours_that_is_not_read_for_its_name_is_told(terminal: Terminal, files: Path, name: str) -> None:
    folder = files / "templates"
    folder.mkdir()
    (folder / name).write_text(SOURCE_FILES["policies.yaml"])
    (files / "docs").mkdir()
    (files / "docs" / name).write_text(SOURCE_FILES["policies.yaml"])
    (folder / "README.md").write_text(SOURCE_FILES["policies.yaml"])
    (folder / f"foreign.{name}").write_text(PLAIN)
    printed = terminal.done("check", str(files))
    assert f"templates/{name}: is not read for its name, and holds BurstPolicy " in printed
    assert printed.endswith(": 0 errors, 1 warning\n")
    (folder / name).rename(folder / "web.YAML")
    assert "templates/web.YAML:2: kind: a BurstPolicy is read from policies" in terminal("check", str(files)).output


@pytest.mark.parametrize("shape", ["empty", "link", "directory"])
def test_check_says_of_a_companion_in_a_source_that_nothing_is_in_its_place(
    terminal: Terminal, files: Path, shape: str
) -> None:
    apps = files / "apps"
    apps.mkdir()
    template = yaml.safe_load(SOURCE_FILES["template.yaml"])
    manifest = template["spec"].pop("manifestResources")[0]["manifest"]
    template["spec"].pop("steps")
    template["spec"]["from"] = {"path": "apps"}
    ref = "/".join((manifest["kind"], manifest["metadata"]["namespace"], manifest["metadata"]["name"]))
    template["metadata"].setdefault("annotations", {})["overspill.dev/workload"] = ref
    (files / "template.yaml").write_text(yaml.safe_dump(template))
    (apps / "a.json").write_text(json.dumps(manifest))
    service = apps / "service.yaml"
    service.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: demo}\nspec: {clusterIP: None}\n")
    assert "spec.from" not in terminal("check", str(files)).output
    service.unlink()
    match shape:
        case "empty":
            service.write_text("")
        case "link":
            service.symlink_to("a.json")
        case _:
            service.mkdir()
            (service / "README.md").write_text("x")
    said = {"empty": "is empty", "link": "is a symbolic link, which is not followed", "directory": "is a directory"}[
        shape
    ]
    result = terminal("check", str(files))
    assert result.exit_code == 1
    assert f"spec.from: apps/service.yaml {said}" in result.output


def test_a_git_lfs_pointer_among_files_of_ours_is_an_error(terminal: Terminal, files: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 1234\n"
    for path in ("docs/web.yaml", "templates/web.yaml"):
        (files / path).parent.mkdir()
        (files / path).write_text(pointer)
    result = terminal("check", str(files))
    assert result.exit_code == 1
    assert (
        result.output.count("is a Git LFS pointer, and nothing is read in it (commit its content: exclude it in") == 1
    )
    assert "templates/web.yaml: is a Git LFS pointer" in result.output


def test_what_is_plainly_foreign_is_one_line(terminal: Terminal, files: Path) -> None:
    foreign = {
        ".github/workflows/check.yaml": "on: push\n",
        "bootstrap/daemon.yaml": PLAIN,
        "bootstrap/rbac.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n",
        "charts/web/Chart.yaml": "apiVersion: v2\nname: web\n",
        "charts/web/templates/web.yaml": "{{ if .Values.a }}\n",
        "kustomization.yaml": "kind: Kustomization\nresources: []\n",
    }
    for path, text in foreign.items():
        (files / path).parent.mkdir(parents=True, exist_ok=True)
        (files / path).write_text(text)
    printed = terminal.done("check", str(files))
    assert (
        "Not read: . (1 file), .github/workflows (1 file), bootstrap (2 files), "
        "charts/web (1 file), charts/web/templates (1 file)\n"
    ) in printed
    assert printed.endswith(": 0 errors, 0 warnings\n")
    answer = json.loads(terminal.done("check", str(files), "-o", "json"))
    assert {entry["path"] for entry in answer["unread"]} == {*foreign}


def test_kinds_without_a_schema_are_one_line(terminal: Terminal, files: Path) -> None:
    (path,) = (path for path in files.iterdir() if "kind: WorkloadTemplate" in path.read_text())
    text = path.read_text()
    path.write_text(text.replace("apiVersion: apps/v1", "apiVersion: example.com/v1").replace("Deployment", "Tool"))
    tenants = files / "workspaces.yaml"
    tenants.write_text(tenants.read_text().replace("[demo]}", "[demo], allowedKinds: [example.com/Tool]}"))
    told = "Not checked, for want of a CustomResourceDefinition in the fleet repository: example.com/v1 Tool\n"
    assert told in terminal.done("check", str(files))
    assert json.loads(terminal.done("check", str(files), "-o", "json"))["unchecked"] == ["example.com/v1 Tool"]


def test_a_path_that_the_fleet_ignores_is_not_told(terminal: Terminal, files: Path) -> None:
    (files / "templates").mkdir()
    (files / "templates" / "web.yaml").write_text(PLAIN)
    fleet = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {ignore: [templates/**]}\n"
    (files / "fleet.yaml").write_text(fleet)
    assert terminal.done("check", str(files)).endswith(": 0 errors, 0 warnings\n")


def test_check_tells_versions_that_a_cluster_does_not_serve_at_their_object(terminal: Terminal, files: Path) -> None:
    def warnings(*options: str) -> list[str]:
        return [line for line in terminal.done("check", str(files), *options).splitlines() if ".apiVersion: " in line]

    head = {"apiVersion": "overspill.dev/v1alpha1", "kind": "Observation", "observedAt": "2026-11-20T10:00:00Z"}
    seen = [
        {**head, "cluster": "worker-2", "apiVersions": ["v1", "apps/v1beta2"]},
        {**head, "cluster": "worker-3", "apiVersions": ["v1", "apps/v1"]},
    ]
    observations = files.parent / "observations.yaml"
    observations.write_text(yaml.safe_dump_all(seen))
    assert warnings() == []
    (line,) = warnings("--observations", str(observations))
    place, _, message = line.partition(".apiVersion: ")
    path, number, field = place.split(":")
    written = Path(path).read_text().splitlines()[int(number) - 1]
    assert (written.strip(), field) == ("apiVersion: apps/v1", " spec.manifestResources[0].manifest")
    assert message == (
        "worker-2 serves apps/v1beta2, but the Deployment is written in apps/v1: no burst of it goes there"
        " (write it in apps/v1beta2, or upgrade the cluster to a Kubernetes that serves apps/v1)"
    )
