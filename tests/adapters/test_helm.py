"""Charts rendered by a real helm, from a repository that the test serves."""

from __future__ import annotations

import io
import shutil
import tarfile
import time
from pathlib import Path

import pytest

from reconciler.adapters.helm.rendering import Helm
from reconciler.errors import InvalidInput, Transient
from reconciler.model.bounds import CHART_DEPTH, CHART_OUTPUT, CHART_VALUES
from reconciler.model.policy import EngineName
from reconciler.model.workload import HelmFlags
from tests.builders.deploy_specs import chart, objects, spec
from tests.builders.memory import peak_memory
from tests.fakes.loopback import LoopbackServer, files_of

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
        "spec:\n  replicas: {{ .Values.replicaCount }}\n  selector: {matchLabels: {app: web}}\n"
        "  template:\n    metadata: {labels: {app: web}, annotations: *notes}\n"
        "    spec: {containers: [{name: web, image: registry.example.com/web:1}]}\n"
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
    with LoopbackServer(files_of(root)) as server:
        yield server.url


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
    rendered = helm.template(config, hooks=False)
    for manifest in rendered:
        manifest.get("spec", {}).pop("odd", None)  # no API server knows it
    made = objects(spec(config), EngineName.MANIFESTS, charts={config.name: rendered})
    web = made["01-vllm-app-002-deployment-vllm.yaml"]
    assert web["metadata"]["namespace"] == "vllm-demo"
    assert web["spec"]["template"]["metadata"]["labels"] == {"app": "web", "overspill.dev/placement": "vllm-7f3a"}


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


@pytest.fixture
def printing(monkeypatch, tmp_path):
    """Put a stand-in for helm first on the PATH that prints what it is given, and note its arguments."""

    def prints(output: bytes = b"", script: str = "", timeout: float = 60) -> Helm:
        (tmp_path / "output").write_bytes(output)
        program = tmp_path / "bin" / "helm"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho \"$@\" > '{tmp_path}/arguments'\n{script or f'cat {tmp_path}/output'}\n")
        program.chmod(0o755)
        return Helm(timeout=timeout)

    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return prints


def rendered(adapter: Helm, *, repo_url: str = "https://charts.example.com"):
    try:
        return adapter.template(stack(repo_url), hooks=False)
    finally:
        adapter.close()


MERGES = "kind: a\na0: &a0 {k: 1}\n" + "".join(
    f"a{level}: &a{level} {{<<: [{','.join([f'*a{level - 1}'] * 9)}]}}\n" for level in range(1, 9)
)
DEEP = "kind: a\na0: &a0 {k: 1}\n" + "".join(
    f"a{level}: &a{level} {'[' * 20}*a{level - 1}{']' * 20}\n" for level in range(1, 9)
)
HOSTILE = {
    "empty lists": ("kind: a\nx: [" + "[]," * (2**22 // 3) + "]\n", f"more than {CHART_VALUES.most:,} values"),
    "empty documents": ("---\n" * 2**20, f"more than {CHART_VALUES.most:,} values"),
    "merge keys of merge keys": (MERGES, f"more than {CHART_VALUES.most:,} values"),
    "aliases of aliases": (MERGES.replace("<<", "x"), f"more than {CHART_VALUES.most:,} values"),
    "a long text many times": (
        f"kind: a\nx: &a {'x' * 2**20}\ny: [{'*a, ' * 100_000}]",
        f"{CHART_OUTPUT.most:,} characters",
    ),
    "aliases that go deeper and deeper": (DEEP, f"nested deeper than {CHART_DEPTH.most} levels"),
    "lists in lists": ("kind: a\nx: " + "[" * 2**22, f"nested deeper than {CHART_DEPTH.most} levels"),
    "an alias of itself": ("kind: a\nx: &a [*a]\n", r"alias \*a stands for nothing"),
    "tag directives": ("".join(f"%TAG !{n}! x\n" for n in range(2**18)) + "---\nkind: a\n", "tags are not read"),
    "hidden tag directives": ("#\r%TAG !a! x\n---\nkind: a\n", "tags are not read"),
    "a number without end": ("kind: a\nx: " + "9" * 2**20, "more than a number can hold"),
    "a number that is none": ("kind: a\nx: .nan\n", "a number that JSON does not have"),
    "a tag": ("kind: a\nx: !!python/object:os.system {}\n", "tag .*python/object:os.system is not read"),
    "a wrong tag": ("kind: a\nx: !!bool perhaps\n", "'perhaps' is no bool"),
    "a key that is a list": ("kind: a\n? [x]\n: y\n", "a key of it is no text"),
    "a merge of a text": ("kind: a\n<<: x\n", "what a merge key has is no mapping"),
    "no object": ("- a\n", "no Kubernetes object"),
    "no YAML": ("kind: [\n", "the manifests are not YAML"),
}


@pytest.mark.parametrize(("output", "message"), HOSTILE.values(), ids=HOSTILE)
@pytest.mark.exhaustive(one_in=4)
def test_hostile_output_is_refused_before_it_costs_much(printing, output, message):
    adapter = printing(output.encode())
    peak, started = peak_memory(), time.process_time()
    with pytest.raises(InvalidInput, match=message):
        rendered(adapter)
    assert time.process_time() - started < 10  # of CPU, which a busy machine does not add to; two seconds at most
    assert peak() < 100 * 2**20


def test_what_a_chart_may_use_of_yaml_is_read(printing):
    output = (
        "---\n# nothing\n---\nkind: A\nbase: &base {a: 1, b: [x], c: 0x10}\nown: {b: [y], <<: *base}\n"
        "two: {<<: [{a: 2}, *base]}\ntext: ['<<', =, 2026-11-20, !!str 1, ! 2]\nnone: ~\n1: &key k\n*key : v\n"
        "twice: 1\ntwice: 2\n"
    )
    (made,) = rendered(printing(output.encode()))
    base = {"a": 1, "b": ["x"], "c": 16}
    assert made == {
        "kind": "A", "base": base, "own": base | {"b": ["y"]}, "two": base | {"a": 2},
        "text": ["<<", "=", "2026-11-20", "1", "2"], "none": None, "1": "k", "k": "v", "twice": 2,
    }  # fmt: skip # a table, a row a line


def test_output_without_end_is_read_to_the_limit_only(printing):
    with pytest.raises(InvalidInput, match="it becomes more than 16 MiB of manifests"):
        rendered(printing(script="yes"))


def test_complaints_without_end_are_cut_and_a_helm_that_hangs_is_ended_with_its_children(printing, tmp_path):
    with pytest.raises(InvalidInput, match="rendering chart 'vllm-app': y y y"):
        rendered(printing(script="yes | head -c 1000000 >&2; exit 1"))
    with pytest.raises(Transient, match="helm did not end within 2 s"):
        rendered(printing(script=f"sleep 60 & echo $! > {tmp_path}/child; wait", timeout=2))
    state = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    deadline = time.monotonic() + 30
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    "url",
    [
        "https://ann:{}@charts.example.com",
        "https://{}@charts.example.com/stable",
        "oci://ann:{}@registry.example.com/charts",
        "https://ann:a/{}@charts.example.com",
        "https://charts.example.com/stable?token={}",
    ],
)
def test_a_login_in_an_address_reaches_no_argument_list_and_no_message(printing, tmp_path, url):
    with pytest.raises(InvalidInput, match="its repoURL holds a login") as caught:
        rendered(printing(b"kind: a\n"), repo_url=url.format("pass" + "word"))
    assert "password" not in str(caught.value)
    assert not (tmp_path / "arguments").exists()
