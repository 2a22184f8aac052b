"""`doctor` says what a first burst lacks, and the command that mends it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler import bulkhead
from reconciler.bulkhead import Seam
from reconciler.text.timestamps import format_time
from tests.builders.ready_fleet import FILES, ReadyFleet, made
from tests.builders.remote import Remote
from tests.cli.conftest import Terminal
from tests.fakes.engine_webhooks import ARGOCD, FLUX, SECRET, listening
from tests.fakes.kube_api_server import kubeconfig

Row = tuple[str, str, str, str]


@pytest.fixture
def ready(tmp_path: Path, overspill: Terminal, fleet: Remote) -> Iterator[ReadyFleet]:
    """Serve three clusters with all that the fleet needs."""
    fleet.commit("main", FILES)
    overspill.env["OVERSPILL_OBSERVATIONS"] = ""
    with ExitStack() as stack:
        ready = ReadyFleet(tmp_path, stack)
        overspill.env["OVERSPILL_KUBECONFIG"] = str(ready.kubeconfig)
        yield ready


def results(overspill: Terminal, *arguments: str, exit_code: int = 1) -> list[Row]:
    """Run the command; return its results as place, readiness, what was seen of what, and remedy."""
    done = overspill("doctor", *arguments, "-o", "json")
    assert done.exit_code == exit_code, done.output
    groups: list[dict[str, Any]] = json.loads(done.stdout)
    return [
        (group["place"], result["readiness"], f"{result['subject']}: {result['seen']}", result["remedy"])
        for group in groups
        for result in group["results"]
    ]


def others(rows: list[Row]) -> list[Row]:
    """Return the results that are not ok."""
    return [row for row in rows if row[1] != "ok"]


def test_fleet_that_is_ready_lacks_nothing_and_nothing_is_written(
    overspill: Terminal, ready: ReadyFleet, fleet: Remote
) -> None:
    before = fleet.git("for-each-ref")
    rows = results(overspill, exit_code=0)
    assert others(rows) == []
    assert list(dict.fromkeys(row[0] for row in rows)) == [
        "this machine", "git", "worker-1", "worker-2", "worker-3", "Argo CD",
    ]  # fmt: skip # a list of words
    assert ("worker-2", "ok", "Flux's version: v2.9.1", "") in rows
    assert ("worker-2", "ok", "Secret demo/hub: there, for Deployment vllm", "") in rows
    assert ("worker-3", "ok", "namespace demo: there", "") in rows
    assert fleet.git("for-each-ref") == before


def unready(ready: ReadyFleet, message: str = "failed to checkout") -> None:
    raw = ready.flux.objects["gitrepositories"]["overspill/placements"]
    raw["status"]["conditions"][0] |= {"status": "False", "message": message}


GRANT = "overspill grant --context worker-1"
APPLY_FLUX = "overspill bootstrap flux --cluster worker-2 | kubectl --context worker-2 apply -f -"
APPLY_ARGO_CD = "overspill bootstrap argocd | kubectl --context worker-3 apply -f -"
CLEAN = (
    """jq 'del(.metadata["creationTimestamp", "finalizers", "generateName", "managedFields", "ownerReferences","""
    """ "resourceVersion", "uid"], .status)'"""
)
COPY = f"{CLEAN} | kubectl --context worker-2 apply -f -"
LOGIN = "kubectl --context worker-2 create secret generic placements-read --namespace=overspill"


def test_all_that_lacks_is_told_with_the_command_that_mends_it(
    overspill: Terminal, ready: ReadyFleet, fleet: Remote
) -> None:
    fleet.commit("placements", {"README.md": "begun"})
    ready.primary.denied.add("deployments.apps")
    ready.flux.kinds.pop("kustomize.toolkit.fluxcd.io/v1")
    ready.flux.delete("namespaces", "demo")
    ready.flux.delete("secrets", "placements-read", "overspill")
    ready.flux.delete("secrets", "hub", "demo")
    unready(ready, "failed to get secret")
    ready.argo_cd.delete("namespaces", "demo")
    ready.argo_cd.denied.add("argocd/applications.argoproj.io")
    ready.argo_cd.objects["appprojects"]["argocd/overspill"]["spec"]["destinations"] = []
    ready.argo_cd.delete("applicationsets", "overspill", "argocd")
    ready.argo_cd.delete("secrets", "worker-3", "argocd")
    who = "overspill-system/overspill may not list and watch"
    assert others(results(overspill)) == [
        ("worker-1", "missing", f"rights of bootstrap/rbac.yaml: {who} deployments.apps", GRANT),
        (
            "worker-2", "missing", "Flux's kinds: kustomizations of kustomize.toolkit.fluxcd.io/v1 not served",
            "flux --context worker-2 install",
        ),
        (
            "worker-2", "missing",
            "accounts, rights and namespaces: 1 of 12 objects not there: Namespace demo", APPLY_FLUX,
        ),
        (
            "worker-2", "missing",
            "GitRepository placements: not ready: failed to get secret; Secret placements-read is not there",
            f"{LOGIN} --from-literal=username=USERNAME --from-literal=password=PASSWORD",
        ),
        (
            "worker-2", "missing", "Secret demo/hub: not there; needed for Deployment vllm",
            f"kubectl --context worker-1 get --namespace=demo secret/hub --output=json | {COPY}",
        ),
        ("worker-3", "missing", "namespace demo: not there", "kubectl --context worker-3 create namespace demo"),
        (
            "Argo CD", "missing",
            f"rights of bootstrap/rbac-argocd.yaml: {who} applications.argoproj.io in namespace argocd",
            "overspill grant --context worker-3",
        ),
        (
            "Argo CD", "missing",
            "AppProject overspill: of an earlier fleet, without destination worker-3, namespace demo", APPLY_ARGO_CD,
        ),
        ("Argo CD", "missing", "ApplicationSet overspill: not there", APPLY_ARGO_CD),
        (
            "Argo CD", "missing", "cluster worker-3: Argo CD has no cluster Secret whose name is 'worker-3'",
            "argocd cluster add worker-3 --name worker-3 --in-cluster",
        ),
    ]  # fmt: skip # a line as it is printed, and its remedy


def test_right_to_what_is_not_served_is_not_needed(overspill: Terminal, ready: ReadyFleet) -> None:
    ready.primary.denied.add("workloads.kueue.x-k8s.io")
    assert others(results(overspill, exit_code=0)) == []
    ready.primary.groups["kueue.x-k8s.io"] = ["v1beta1"]
    ((place, readiness, seen, remedy),) = others(results(overspill))
    assert (place, readiness, remedy) == ("worker-1", "missing", GRANT)
    assert seen.endswith("may not list and watch workloads.kueue.x-k8s.io")


def test_rights_of_the_daemon_are_reviewed_with_the_login_of_somebody_else(
    overspill: Terminal, ready: ReadyFleet
) -> None:
    ready.primary.denied.add("deployments.apps")
    ready.primary.account = "kubernetes-admin"
    ((place, readiness, seen, remedy),) = others(results(overspill, "--as", "ops/watcher"))
    assert (place, readiness, remedy) == ("worker-1", "missing", GRANT)
    assert seen == "rights of bootstrap/rbac.yaml: ops/watcher may not list and watch deployments.apps"
    reviews = [query for _, path, query in ready.primary.asked if path.endswith("/subjectaccessreviews")]
    assert {review["spec"]["user"] for review in reviews} == {"system:serviceaccount:ops:watcher"}
    assert "system:serviceaccounts:ops" in reviews[0]["spec"]["groups"]
    assert overspill("doctor", "--as", "watcher").exit_code == 2


def test_clock_that_is_wrong_is_told(overspill: Terminal, ready: ReadyFleet) -> None:
    ready.primary.ahead = 3600
    ((place, readiness, seen, _),) = others(results(overspill))
    assert (place, readiness) == ("worker-1", "missing")
    assert "ahead of ours" in seen


@pytest.mark.parametrize(
    ("image", "seen"),
    [("quay.io/argoproj/argocd:v3.2.11@sha256:00", "v3.2.11, and 3.4 or newer is needed"), ("other:v1.0.0", None)],
)
def test_engine_that_is_too_old_is_told(overspill: Terminal, ready: ReadyFleet, image: str, seen: str | None) -> None:
    controller = ready.argo_cd.objects["deployments"]["argocd/argocd-applicationset-controller"]
    controller["spec"]["template"]["spec"]["containers"][0]["image"] = image
    ((place, readiness, told, remedy),) = others(results(overspill, exit_code=0 if seen is None else 1))
    if seen is None:
        assert (readiness, "tells it" in told) == ("unknown", True)
        return
    assert (place, readiness, told) == ("Argo CD", "missing", f"Argo CD's version: {seen}")
    assert remedy.startswith("kubectl --context worker-3 apply -n argocd --server-side")


def test_version_of_a_template_that_a_cluster_does_not_serve_is_told(overspill: Terminal, ready: ReadyFleet) -> None:
    ready.flux.groups["apps"] = ["v1beta2"]
    look = "kubectl --context worker-2 api-versions"
    seen = (
        "API versions of templates: serves apps/v1beta2, but the Deployment of template llm/vllm is written"
        " in apps/v1: write it in apps/v1beta2, or upgrade the cluster to a Kubernetes that serves apps/v1"
    )
    assert others(results(overspill)) == [("worker-2", "missing", seen, look)]


def test_daemon_is_looked_at_where_one_is_named(overspill: Terminal, ready: ReadyFleet) -> None:
    # Any server tells the time: this one says too that it is well, as a daemon does.
    ready.primary.documents["/healthz"] = {"status": "failing", "reason": "the last pass failed; the log says why"}
    place = f"daemon {ready.primary.url}"
    rows = [row for row in results(overspill, "--server", ready.primary.url) if row[0] == place]
    look = f"curl {ready.primary.url}/healthz"
    assert rows == [
        (place, "missing", "daemon: failing: the last pass failed; the log says why", look),
        (place, "ok", "clock: within 10s of ours", ""),
    ]
    ready.primary.documents["/healthz"] = {"status": "ok"}
    overspill.env["OVERSPILL_SERVER"] = ready.primary.url
    assert (place, "ok", "daemon: ok", "") in results(overspill, exit_code=0)
    rows = others(results(overspill, "--server", "http://127.0.0.1:9"))
    assert [row[1:3] for row in rows] == [("missing", "daemon: connection refused")]


def test_source_waits_for_the_branch_that_the_first_pass_begins(
    overspill: Terminal, ready: ReadyFleet, fleet: Remote
) -> None:
    unready(ready)
    seen = "GitRepository placements: not ready: failed to checkout"
    waiting = ("worker-2", "unknown", f"{seen}; the output branch has not begun", "overspill once")
    assert others(results(overspill, exit_code=0)) == [waiting]
    fleet.commit("placements", {"README.md": "begun"})
    describe = "kubectl --context worker-2 describe --namespace=overspill"
    remedy = f"{describe} gitrepository.source.toolkit.fluxcd.io/placements"
    assert others(results(overspill)) == [("worker-2", "missing", seen, remedy)]


def test_what_this_login_may_not_see_is_unknown(overspill: Terminal, ready: ReadyFleet) -> None:
    ready.argo_cd.refuses["/namespaces/demo"] = 403
    ((place, readiness, seen, remedy),) = others(results(overspill, exit_code=0))
    assert (place, readiness) == ("worker-3", "unknown")
    assert seen.startswith("namespace demo: forbids it: ")
    assert remedy == "kubectl --context worker-3 get namespace demo"


def test_cluster_that_is_away_costs_one_line(overspill: Terminal, ready: ReadyFleet, tmp_path: Path) -> None:
    kubeconfig(
        ready.kubeconfig,
        ("worker-1", "http://127.0.0.1:1"),
        ("worker-2", ready.flux.url),
        ("worker-3", ready.argo_cd.url),
    )
    rows = results(overspill)
    ((place, readiness, seen, remedy),) = others(rows)
    assert (place, readiness) == ("worker-1", "missing")
    assert seen.startswith("API server: cannot be reached: ")
    assert remedy == f"kubectl --kubeconfig {ready.kubeconfig} --context worker-1 get --raw /version"
    assert [row[0] for row in rows].count("worker-1") == 1
    assert ("worker-3", "ok", "namespace demo: there", "") in rows


def test_login_that_is_refused_is_made_anew(overspill: Terminal, ready: ReadyFleet) -> None:
    ready.primary.token = "another"
    ((place, readiness, seen, remedy),) = others(results(overspill))
    assert (place, readiness) == ("worker-1", "missing")
    assert seen.startswith("API server: does not take our credentials")
    assert remedy == f"overspill grant --context worker-1 --kubeconfig-out {ready.kubeconfig}"


def test_context_that_is_not_in_the_kubeconfig_is_told_with_those_that_are(
    overspill: Terminal, ready: ReadyFleet
) -> None:
    kubeconfig(
        ready.kubeconfig, ("worker-3", ready.argo_cd.url), ("w2", ready.flux.url), ("worker-1", ready.primary.url)
    )
    seen = "API server: the kubeconfig has no context worker-2 (no Cluster uses yet: w2)"
    remedy = f"kubectl --kubeconfig {ready.kubeconfig} config get-contexts --output=name"
    assert others(results(overspill)) == [("worker-2", "missing", seen, remedy)]


def test_template_of_a_repository_outside_of_the_fleet_is_named_with_the_edit(
    overspill: Terminal, fleet: Remote
) -> None:
    head, _ = FILES["template.yaml"].split("  manifestResources:")
    head = head.replace("demo}", "demo, annotations: {overspill.dev/workload: Deployment/demo/vllm}}", 1)
    source = "{repository: {url: https://git.example.com/apps.git, path: vllm}}"
    fleet.commit("main", {"template.yaml": f"{head}  from: {source}\n"})
    (row,) = (row for row in results(overspill) if row[2].startswith("template.yaml:"))
    assert (
        re.sub(":[0-9]+:", ":LINE:", row[2])
        == "template.yaml:LINE: spec.from.repository.url: the Fleet names no repository"
        " https://git.example.com/apps.git"
    )
    assert row[1] == "missing"
    assert "add it to its spec.sourceRepositories; then `overspill check`" in overspill("doctor").stdout


def test_a_context_that_another_file_hides_is_told(overspill: Terminal, ready: ReadyFleet, tmp_path: Path) -> None:
    """As of two files of k3s, whose contexts, clusters and users are all called `default`."""
    kubeconfig(ready.kubeconfig, ("worker-1", ready.primary.url), ("worker-3", ready.argo_cd.url))
    other = kubeconfig(tmp_path / "other", ("worker-2", ready.flux.url), ("unused", ready.flux.url), token="another")
    both = os.pathsep.join(map(str, (ready.kubeconfig, other)))
    result = overspill("doctor", "--kubeconfig", both, "-o", "json")
    rows = [row for group in json.loads(result.stdout) for row in group["results"]]
    (row,) = [row for row in rows if row["subject"].startswith("kubeconfig ")]
    assert (row["readiness"], row["subject"]) == ("missing", f"kubeconfig {other}")
    assert row["seen"] == "context worker-2 takes the user reader of an earlier file, and not its own"
    assert row["remedy"] == f"kubectl --kubeconfig {other} config view  # rename its context, cluster and user"
    reached = [(row["subject"], row["readiness"]) for row in rows if row["subject"] == "API server"]
    assert ("API server", "ok") in reached


def test_without_a_kubeconfig_files_tell_of_clusters(
    overspill: Terminal, ready: ReadyFleet, observations: Path
) -> None:
    now = datetime.now(UTC)
    for cluster, at in (("worker-1", now), ("worker-2", now - timedelta(hours=2))):
        head = f"apiVersion: overspill.dev/v1alpha1\nkind: Observation\ncluster: {cluster}\npools: []\n"
        (observations / f"{cluster}.yaml").write_text(f'{head}observedAt: "{format_time(at)}"\n')
    overspill.env |= {"OVERSPILL_KUBECONFIG": "", "OVERSPILL_OBSERVATIONS": str(observations)}
    rows = [row[:3] for row in results(overspill) if row[0] not in ("git", "this machine")]
    assert [row[:2] for row in rows] == [
        ("worker-1", "ok"), ("worker-2", "missing"), ("worker-3", "unknown"), ("Argo CD", "unknown"),
    ]  # fmt: skip # a line, as it is printed
    assert re.fullmatch(r"observation: 2h\S* old, and the Fleet's observationMaxAge is 2m", rows[1][2])
    assert rows[2][2] == "API server: no kubeconfig is named, so nobody can be asked"
    overspill.env["KUBECONFIG"] = str(ready.kubeconfig)
    assert f"not read by default (to look at its clusters, pass --kubeconfig {ready.kubeconfig})" in (
        overspill("doctor").stderr
    )


def test_files_hide_no_login_that_does_not_work(
    overspill: Terminal, ready: ReadyFleet, observations: Path, tmp_path: Path
) -> None:
    head = "apiVersion: overspill.dev/v1alpha1\nkind: Observation\ncluster: worker-2\n"
    (observations / "worker-2.yaml").write_text(f'{head}observedAt: "{format_time(datetime.now(UTC))}"\n')
    overspill.env["OVERSPILL_OBSERVATIONS"] = str(observations)
    away = kubeconfig(tmp_path / "away", ("worker-2", "http://127.0.0.1:9"))
    rows = [row for row in results(overspill, "--kubeconfig", str(away)) if row[0] == "worker-2"]
    assert [row[1] for row in rows] == ["missing", "ok"]
    assert "from a file" in rows[1][2]


def test_argo_cd_whose_cluster_is_not_described_is_told(overspill: Terminal, ready: ReadyFleet, fleet: Remote) -> None:
    fleet.commit("main", {"fleet.yaml": FILES["fleet.yaml"].replace(", argocd: {connection: {context: worker-3}}", "")})
    ((place, readiness, seen, remedy),) = others(results(overspill, exit_code=0))
    assert (place, readiness) == ("Argo CD", "unknown")
    assert seen.endswith("what it says of placements is not seen (set its spec.argocd.connection)")
    assert remedy.endswith(
        "config get-contexts --output=name  # the one of Argo CD's cluster goes to spec.argocd.connection.context of"
        " fleet.yaml"
    )


def test_fleet_without_an_address_for_engines_is_told_where_they_need_it(
    overspill: Terminal, ready: ReadyFleet, fleet: Remote
) -> None:
    fleet.commit("main", {"fleet.yaml": FILES["fleet.yaml"].replace("repoURL", "#")})
    fleet.commit(
        "main", {"fleet.yaml": FILES["fleet.yaml"].replace('repoURL: "https://git.example.com/ml/fleet.git", ', "")}
    )
    spec = f'spec: {{repoURL: "{fleet.url}"}}'
    document = f"{{apiVersion: overspill.dev/v1alpha1, kind: Fleet, metadata: {{name: fleet}}, {spec}}}"
    unset = (
        "git", "missing",
        "spec.repoURL: not set, so Argo CD and Flux cannot be told where to fetch the output branch",
        f"set it in the Fleet, or commit one: {document}; then `overspill bootstrap`",
    )  # fmt: skip # a row as it is printed
    assert others(results(overspill)) == [unset]
    overspill.env["OVERSPILL_KUBECONFIG"] = ""
    assert unset in others(results(overspill))


def test_companions_that_may_not_be_read_are_told_by_their_names(
    overspill: Terminal, ready: ReadyFleet, fleet: Remote
) -> None:
    head, _ = FILES["template.yaml"].split("  manifestResources:")
    source = "  from: {workload: {kind: Deployment, namespace: demo, name: vllm}, companions: [configmap/settings]}\n"
    fleet.commit("main", {"template.yaml": head + source})
    allowed = "rights to companions: {} list and watch configmaps settings in namespace demo"
    rows = results(overspill, exit_code=0)
    assert ("worker-1", "ok", allowed.format("may"), "") in rows
    ready.primary.denied.add("demo/configmaps/settings")
    denied = allowed.format("overspill-system/overspill may not")
    assert [row for row in others(results(overspill)) if row[1] == "missing"] == [
        ("worker-1", "missing", denied, GRANT),
    ]  # fmt: skip # a row as it is printed


def test_namespace_that_each_placement_makes_need_not_be_there(
    overspill: Terminal, ready: ReadyFleet, fleet: Remote
) -> None:
    ready.argo_cd.delete("namespaces", "demo")
    make = "  cmdExec: [{name: space, cmd: kubectl create namespace demo}]\n  steps: [{name: space, type: command}, "
    fleet.commit("main", {"template.yaml": FILES["template.yaml"].replace("  steps: [", make)})
    rows = results(overspill, exit_code=0)
    assert ("worker-3", "ok", "namespace demo: made by the placements that go there", "") in rows


def test_branches_and_files_are_looked_at(overspill: Terminal, fleet: Remote) -> None:
    fleet.commit("main", {"clusters.yaml": "kind: Cluster\n"})
    fleet.commit("placements/old", {"README.md": "in the way"})
    rows = {
        subject.partition(":")[0]: (readiness, subject, remedy) for _, readiness, subject, remedy in results(overspill)
    }
    assert rows["source branch main"][0] == "ok"
    assert rows["files"][0] == "missing"
    assert rows["output branch placements"] == (
        "missing",
        "output branch placements: cannot begin: git keeps no branch beside 'placements/old'",
        "git push origin origin/placements/old:refs/heads/placements-old :placements/old",
    )


def test_fleet_in_which_nothing_may_burst_is_told(overspill: Terminal, fleet: Remote) -> None:
    fleet.commit("main", {"policies.yaml": None})
    ((_, readiness, seen, remedy),) = [row for row in others(results(overspill)) if row[0] == "git"]
    assert (readiness, remedy) == ("missing", "overspill check")
    assert seen == "files: no template that may burst: none has a BurstPolicy"


def test_missing_source_branch_is_told_with_the_one_that_is_meant(overspill: Terminal) -> None:
    ((place, readiness, seen, remedy),) = others(results(overspill, "--source-branch", "mian"))
    assert (place, readiness) == ("git", "missing")
    assert "(try --source-branch main," in seen
    assert remedy == "git push origin HEAD:mian"


def test_repository_that_cannot_be_fetched_leaves_webhooks_to_look_at(
    overspill: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    overspill.env |= {"OVERSPILL_REPO": str(tmp_path / "absent.git"), "OVERSPILL_NOTIFY_SECRET": SECRET}
    with listening() as engine:
        rows = results(overspill, "--notify", f"argocd={engine.url}{ARGOCD}")
    assert [(place, readiness) for place, readiness, *_ in rows] == [
        ("this machine", "ok"), ("git", "missing"), ("webhooks", "ok"),
    ]  # fmt: skip # a line, as it is printed
    assert rows[1][3] == f"git ls-remote {tmp_path}/absent.git"


def test_webhooks_are_reached_and_told_nothing(
    overspill: Terminal, ready: ReadyFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    overspill.env["OVERSPILL_NOTIFY_SECRET"] = SECRET
    with listening() as engine:
        addresses = (f"argocd={engine.url}{ARGOCD}", f"flux={engine.url}{FLUX}", f"flux={engine.url}/hook/other",
                     "argocd=http://127.0.0.1:1/api/webhook")  # fmt: skip # words of one command
        rows = results(overspill, *(word for address in addresses for word in ("--notify", address)))
        assert engine.taken == []
    webhooks = [row for row in rows if row[0] == "webhooks"]
    assert [readiness for _, readiness, *_ in webhooks] == ["ok", "ok", "missing", "missing"]
    assert "answers 404" in webhooks[2][2]
    assert "0f0f" not in str(webhooks), "the path of a Receiver is a secret"


def test_line_has_its_remedy_below_it(overspill: Terminal, ready: ReadyFleet) -> None:
    ready.argo_cd.delete("namespaces", "demo")
    done = overspill("doctor")
    assert done.exit_code == 1
    assert (
        "missing  namespace demo: not there\n         kubectl --context worker-3 create namespace demo\n" in done.stdout
    )
    assert done.stdout.endswith(", 1 missing, 0 unknown.\n")


def test_answer_that_no_api_server_gives_costs_its_own_line(overspill: Terminal, ready: ReadyFleet) -> None:
    ready.argo_cd.put("applicationsets", {**made("v1", "ApplicationSet", "overspill", "argocd"), "status": ["odd"]})
    done = overspill("doctor", "-o", "json")
    assert done.exit_code == 3
    assert "please report it" in done.stderr
    rows = [result for group in json.loads(done.stdout) for result in group["results"]]
    assert [result["readiness"] for result in rows].count("unknown") == 1


def test_bug_in_one_check_costs_its_own_line(
    overspill: Terminal, ready: ReadyFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, times = bulkhead._run, []

    def injured(seam: Seam, item: object, call: Callable[[], Any]) -> Any:
        if seam is Seam.CHECK and not times:
            times.append(item)
            raise RuntimeError("injected")
        return run(seam, item, call)

    monkeypatch.setattr(bulkhead, "_run", injured)
    done = overspill("doctor", "-o", "json")
    assert done.exit_code == 3
    rows = [result for group in json.loads(done.stdout) for result in group["results"]]
    assert [result["seen"] for result in rows if result["readiness"] != "ok"] == [
        "a bug of Overspill in checking the cluster: RuntimeError: injected"
    ]
    assert "injected" in done.stderr


def test_no_form_shows_the_token_of_an_address(overspill: Terminal, ready: ReadyFleet, fleet: Remote) -> None:
    unready(ready, "failed to clone https://git.example.com/fleet.git?private_token=fake-token-of-a-test")
    fleet.commit("placements", {"README.md": "begun"})
    for form in ("table", "json", "yaml"):
        printed = overspill("doctor", "-o", form).output
        assert "git.example.com/fleet.git" in printed
        assert "fake-token-of-a-test" not in printed
