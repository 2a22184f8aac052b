"""Charts rendered by a real helm, from a repository that the test serves."""

from __future__ import annotations

import io
import shutil
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reconciler.adapters.helm import Helm
from reconciler.errors import InvalidInput, Transient
from reconciler.model.policy import EngineName
from reconciler.model.workload import HelmFlags
from tests.rendering.specs import chart, objects, spec

needs_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")

FILES = {
    "Chart.yaml": "apiVersion: v2\nname: stack\nversion: 0.1.7\n",
    "values.yaml": "replicaCount: 1\nnote: none\n",
    "crds/pool.yaml": (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: pools.example.com}\n"
    ),
    "templates/web.yaml": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n"
        "  annotations: &notes {since: 2026-11-20, at: 12:30:45, 8080: x}\n"
        "spec:\n  replicas: {{ .Values.replicaCount }}\n  template: {metadata: {annotations: *notes}}\n"
        "  odd: {big: 1e3, yes: on}\n"
    ),
    "templates/config.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: {{ .Release.Namespace }}}\n"
        "data: {note: {{ .Values.note | quote }}}\n"
        '{{ if eq .Values.note "fail" }}{{ fail "the note is bad" }}{{ end }}\n'
    ),
    "templates/hook.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n"
    ),
    "templates/tests/it.yaml": ("apiVersion: v1\nkind: Pod\nmetadata: {name: it, annotations: {helm.sh/hook: test}}\n"),
}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("charts")
    with tarfile.open(root / "stack-0.1.7.tgz", "w:gz") as archive:
        for path, text in FILES.items():
            entry = tarfile.TarInfo(f"stack/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    (root / "index.yaml").write_text(
        "apiVersion: v1\nentries:\n  stack:\n"
        "  - {apiVersion: v2, name: stack, version: 0.1.7, urls: [stack-0.1.7.tgz]}\n"
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def helm():
    adapter = Helm()
    yield adapter
    adapter.close()


def stack(url, **changes):
    return chart(**{"chart": "vllm/stack", "repo_url": url, "flags": HelmFlags(skip_crds=True)} | changes)


def kinds(manifests):
    return [(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests]


@needs_helm
def test_a_chart_becomes_objects_with_its_values(helm, repository):
    assert helm.available()
    config, web = helm.template(stack(repository, values={"replicaCount": 3, "note": "a: b\n- c"}), hooks=False)
    assert kinds((config, web)) == [("ConfigMap", "config"), ("Deployment", "vllm")]
    assert config["metadata"]["namespace"] == "vllm-demo"
    assert config["data"]["note"] == "a: b\n- c"
    assert web["spec"]["replicas"] == 3


@needs_helm
def test_helms_output_is_read_as_kubectl_reads_it(helm, repository):
    _, web = helm.template(stack(repository), hooks=False)
    assert web["spec"]["odd"] == {"big": 1000.0, "true": True}
    notes = {"since": "2026-11-20", "at": "12:30:45", "8080": "x"}
    assert web["metadata"]["annotations"] == web["spec"]["template"]["metadata"]["annotations"] == notes


@needs_helm
def test_hooks_crds_and_tests_are_there_only_where_they_are_wanted(helm, repository):
    hook, crd = ("ConfigMap", "hook"), ("CustomResourceDefinition", "pools.example.com")
    assert hook in kinds(helm.template(stack(repository), hooks=True))
    assert hook not in kinds(helm.template(stack(repository), hooks=False))
    assert crd in kinds(helm.template(stack(repository, flags=HelmFlags()), hooks=False))
    assert ("Pod", "it") not in kinds(helm.template(stack(repository), hooks=True))


@needs_helm
def test_a_rendered_chart_becomes_the_files_of_a_placement(helm, repository):
    config = stack(repository)
    made = objects(spec(config), EngineName.MANIFESTS, charts={config.name: helm.template(config, hooks=False)})
    web = made["01-vllm-app-002-deployment-vllm.yaml"]
    assert web["metadata"]["namespace"] == "vllm-demo"
    assert web["spec"]["template"]["metadata"]["labels"] == {"overspill.dev/placement": "vllm-7f3a"}


@needs_helm
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": {"note": "fail"}}, "rendering chart 'vllm-app': .*the note is bad"),
        ({"chart": "nope"}, 'chart "nope" .*not found'),
        ({"version": "9.9.9"}, "9.9.9"),
        ({"release_name": "Not A Name"}, "rendering chart 'vllm-app': "),
    ],
)
def test_a_chart_that_is_wrong_is_refused_in_helms_own_words(helm, repository, changes, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        helm.template(stack(repository, **changes), hooks=False)
    assert "\n" not in str(caught.value)


@needs_helm
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repo_url": ""}, "its repoURL is not one of http, https or oci"),
        ({"repo_url": "file:///etc"}, "its repoURL is not one of http, https or oci"),
        ({"chart": "/etc"}, "'/etc' cannot be the name of a chart"),
        ({"chart": "../up"}, "cannot be the name of a chart"),
        ({"chart": "--post-renderer=reboot"}, "cannot be the name of a chart"),
    ],
)
def test_nothing_of_this_machine_can_be_rendered(helm, repository, changes, message):
    with pytest.raises(InvalidInput, match=message):
        helm.template(stack(repository, **changes), hooks=False)


@needs_helm
def test_a_repository_that_is_away_is_tried_again_later(helm):
    with pytest.raises(Transient, match="connection refused"):
        helm.template(stack("http://127.0.0.1:9"), hooks=False)


@needs_helm
def test_a_helm_that_hangs_is_ended(repository):
    hasty = Helm(timeout=0.001)
    with pytest.raises(Transient, match=r"helm did not end within 0\.001 s"):
        hasty.template(stack(repository), hooks=False)
    hasty.close()


def test_without_helm_charts_are_refused_with_the_way_out(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    adapter = Helm()
    assert not adapter.available()
    with pytest.raises(InvalidInput, match=r"helm is not installed \(install helm 3\)"):
        adapter.template(chart(), hooks=False)
