"""`support-bundle` has what a maintainer needs, and no secret, wherever it was planted."""

from __future__ import annotations

import gzip
import json
import re
import stat
import tarfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from reconciler.adapters.logs import LogRing
from reconciler.adapters.recording_files import RecordingFiles, read_recording, recording_files
from reconciler.core.decide.state.order import Order
from reconciler.core.recording.pass_record import PassRecord
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.model.capacity import ClusterObservation, Observed, ObservedObject
from reconciler.model.ids import ClusterName, CommitId, TemplateName
from reconciler.model.manifest_source import RepositorySource, SourceContent
from reconciler.model.request import Verb
from reconciler.model.tree import Identity
from reconciler.model.workload import DeploySpec, HelmConfig
from tests.builders.daemon import OWNER, VIEWER, Daemon
from tests.builders.passes import START
from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal

# Put together here, so that no scanner takes this file for a leak.
GITHUB = "ghp_" + "Ab3d" * 9
AWS = "AKIA" + "ABCD1234" * 2
PASSWORD = "hunter" + "2hunter" * 2
SECRETS = (GITHUB, AWS, PASSWORD, OWNER, VIEWER)


def unpacked(path: Path) -> Mapping[str, str]:
    """Return the files of an archive by their names below its directory; what is packed once more is unpacked."""
    files = {}
    with tarfile.open(path) as archive:
        for entry in archive:
            held = archive.extractfile(entry)
            assert held is not None
            data = held.read()
            directory, _, name = entry.name.partition("/")
            assert re.fullmatch(r"overspill-support-\d{8}T\d{6}Z", directory)
            files[name] = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    return files


def holds_no_secret(files: Mapping[str, str], printed: str = "") -> bool:
    return not [
        (name, secret) for name, text in {**files, "printed": printed}.items() for secret in SECRETS if secret in text
    ]


def test_what_this_machine_sees_is_collected_without_secrets(
    overspill: Terminal, see: See, fleet: Remote, tmp_path: Path
) -> None:
    see()
    overspill.done("once")
    fleet.commit(
        "main", {"broken.yaml": f"apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: '{GITHUB}'}}\n"}
    )
    overspill.env |= {
        "OVERSPILL_GIT_PASSWORD": PASSWORD,
        "OVERSPILL_API_TOKENS": f"tokens: [{{name: a, token: {OWNER}}}]",
        "OVERSPILL_PROMETHEUS_TOKEN": AWS,
        "OVERSPILL_NOTIFY": f"argocd=https://argocd.example.com/{GITHUB}",
        "OVERSPILL_NOTIFY_SECRET": PASSWORD,
    }
    out = tmp_path / "bundle.tar.gz"
    printed = overspill.done("support-bundle", "--out", str(out))
    files = unpacked(out)
    assert {*files} == {"CONTENTS.txt", "doctor.json", "history.json", "settings.json", "status.json", "versions.json"}
    assert holds_no_secret(files, printed)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    settings = json.loads(files["settings.json"])
    assert settings["OVERSPILL_GIT_PASSWORD"] == settings["OVERSPILL_NOTIFY"] == "<set>"
    assert settings["OVERSPILL_REPO"] == fleet.url
    status: Any = json.loads(files["status.json"])
    assert [row["workload"] for row in status["workloads"]] == ["llm/vllm"]
    assert any("broken.yaml" in json.dumps(problem) for problem in status["problems"])
    assert len(json.loads(files["history.json"])["placements"]) == 2
    assert {"overspill", "python", "git", "packages"} <= {*json.loads(files["versions.json"])}
    assert json.loads(files["doctor.json"])["groups"]
    assert files["CONTENTS.txt"].strip() in printed
    assert "metrics.txt and log.jsonl: they are a daemon's" in printed
    assert f"Wrote 6 files to {out}." in printed


def test_a_daemon_tells_its_state_metrics_and_log_without_secrets(
    running: Daemon, overspill: Terminal, tmp_path: Path
) -> None:
    ring = LogRing()
    ring(None, "", {"event": "cannot notify", "line": f"https://ann:{PASSWORD}@hook.example.com answers 500"})
    running.log_lines = (
        *ring.lines,
        json.dumps({"event": "x", "env": f"AWS_ACCESS_KEY_ID={AWS}"}),
        f"cut off {GITHUB}",
    )
    overspill.env |= {"OVERSPILL_REPO": "", "OVERSPILL_OBSERVATIONS": "", "OVERSPILL_TOKEN": OWNER}
    out = tmp_path / "bundle.tar.gz"
    printed = overspill.done("support-bundle", "--server", f"http://127.0.0.1:{running.port}", "--out", str(out))
    files = unpacked(out)
    assert {"status.json", "history.json", "metrics.txt", "log.jsonl"} < {*files}
    assert holds_no_secret(files, printed)
    assert "overspill_pass_timestamp_seconds" in files["metrics.txt"]
    first, second, third = files["log.jsonl"].splitlines()
    assert json.loads(first)["event"] == "cannot notify"
    assert "hook.example.com answers 500" in first
    assert json.loads(second)["event"] == "x"
    assert third.startswith("cut off ")
    assert "doctor.json: no repository is named (--repo with a URL or a path)" in printed


def test_what_a_token_may_not_see_is_left_out_with_the_reason(
    running: Daemon, overspill: Terminal, tmp_path: Path
) -> None:
    overspill.env |= {"OVERSPILL_REPO": "", "OVERSPILL_TOKEN": VIEWER}
    out = tmp_path / "bundle.tar.gz"
    overspill.done("support-bundle", "--server", f"http://127.0.0.1:{running.port}", "--out", str(out))
    files = unpacked(out)
    assert "status.json" in files
    assert "log.jsonl" not in files
    assert "log.jsonl: " in files["CONTENTS.txt"]
    assert "the log tells of all workspaces" in files["CONTENTS.txt"]
    assert holds_no_secret(files)


def recorded(number: int, content: str) -> PassRecord:
    """Make a pass that saw a live object, beside a file of another repository and a request with a chart of its own."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prompts", "namespace": "serving"}}
    seen = ClusterObservation(
        cluster=ClusterName("worker-1"),
        observed_at=START + timedelta(seconds=number),
        message=f"https://ann:{PASSWORD}@worker-1.example.com does not answer",
        objects=(ObservedObject(manifest={**config, "data": {"prompt": content}}),),
    )
    chart = HelmConfig(name="a", chart="vllm/vllm", release_name="a", release_namespace="b", values={"prompt": content})
    order = Order(
        number=1,
        verb=Verb.CREATE,
        name="a",
        workspace=None,
        author=Identity(name="Ann", email="ann@example.com"),
        within=None,
        draft=RequestDraft(name=TemplateName("a"), workspace=None, spec=DeploySpec(helm=(chart,))),
    )
    source = RepositorySource(url="https://git.example.com/apps.git", revision="main", path="vllm")
    return PassRecord(
        at=seen.observed_at,
        source=CommitId("5" * 40),
        observed=Observed(
            clusters={seen.cluster: seen},
            sources={source: SourceContent(manifests=({**config, "data": {"prompt": content}},), version="6" * 40)},
        ),
        ages={seen.cluster: timedelta()},
        orders=(order,),
    )


def test_recording_is_redacted_and_has_no_content_of_objects_or_charts(overspill: Terminal, tmp_path: Path) -> None:
    directory = tmp_path / "passes"
    recording = RecordingFiles(directory)
    for number, content in enumerate(("be terse", "be brief")):
        recording.append(recorded(number, content))
    recording.close()
    (file,) = recording_files(directory)
    (directory / "20261119T100000Z.jsonl.gz").write_bytes(gzip.compress(b"an older one"))
    file.write_bytes(file.read_bytes() + gzip.compress(b"cut off")[:-4])
    out = tmp_path / "bundle.tar.gz"
    overspill.done("support-bundle", "--record", str(directory), "--out", str(out))
    files = unpacked(out)
    (name,) = [name for name in files if name.startswith("recording/")]
    assert name == f"recording/{file.name}"
    assert holds_no_secret(files)
    assert not [content for content in ("terse", "brief") if content in files[name]]
    first, second = map(json.loads, files[name].splitlines())
    (held,) = first["pass"]["observed"]["clusters"]["worker-1"]["objects"]
    assert held["manifest"]["metadata"] == {"name": "prompts", "namespace": "serving"}
    changed = {operation["path"]: operation["value"] for operation in second["patch"]}
    after = changed["/observed/clusters/worker-1/objects/0/manifest"]
    assert after["kind"] == "ConfigMap"
    assert after["digest"] != held["manifest"]["digest"]
    assert f"{name}: of manifests and values of charts all but kind, name and digest" in files["CONTENTS.txt"]
    assert "its last pass is cut off" in files["CONTENTS.txt"]
    with tarfile.open(out) as archive:
        archive.extractall(tmp_path, filter="data")
    passes = [*read_recording(next(tmp_path.glob(f"*/{name}")))]
    assert [entry.at for entry in passes if isinstance(entry, PassRecord)] == [START, START + timedelta(seconds=1)]


def test_a_daemon_that_is_away_costs_its_parts_alone(overspill: Terminal, tmp_path: Path) -> None:
    out = tmp_path / "bundle.tar.gz"
    overspill.done("support-bundle", "--server", "http://127.0.0.1:1", "--out", str(out))
    files = unpacked(out)
    assert {"doctor.json", "settings.json", "versions.json"} < {*files}
    assert "status.json: http://127.0.0.1:1" in files["CONTENTS.txt"]


def test_nothing_is_written_over(overspill: Terminal, tmp_path: Path) -> None:
    out = tmp_path / "bundle.tar.gz"
    out.write_text("mine")
    refused = overspill("support-bundle", "--out", str(out))
    assert refused.exit_code == 1
    assert f"{out} is there already (take it away first, or name another with --out)" in refused.stderr
    assert out.read_text() == "mine"


def test_without_anything_to_look_at_it_says_how_to_name_it(overspill: Terminal) -> None:
    overspill.env["OVERSPILL_REPO"] = ""
    refused = overspill("support-bundle")
    assert refused.exit_code == 2
    assert "pass --server URL, --repo with a URL or a path" in " ".join(refused.stderr.split())


def test_the_ring_keeps_the_last_lines_as_json() -> None:
    ring = LogRing(most=2)
    for number in range(4):
        ring(None, "", {"event": f"line {number}", "took": 0.5, "exception": "x" * 9000})
    lines = [json.loads(line) for line in ring.lines]
    assert [line["event"] for line in lines] == ["line 2", "line 3"]
    assert (lines[0]["took"], len(lines[0]["exception"])) == (0.5, 4000)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", lines[0]["timestamp"])
