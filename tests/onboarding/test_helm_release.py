"""A Helm release as a template of its chart: what is found of it, what stays open, and what never comes into git."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from reconciler.adapters.helm.output import sourced_objects
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.onboarding.helm_release import (
    MAX_BYTES,
    ChartObject,
    HelmRelease,
    chart_of,
    choose_workload,
    in_namespace,
    read_release,
    release_document,
    replica_value,
    user_values,
    with_value,
)
from reconciler.core.onboarding.lend import LentFiles, LiveWorkload, find_kind, lent_files
from reconciler.core.onboarding.release_template import ReleasedChart
from reconciler.core.schema import yaml
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.errors import InvalidInput, Severity
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import Desired
from tests.builders.helm_releases import CPU, GPU, OBJECTS, document, manifest, of_cluster, secret, workload

PRIMARY = ClusterName("worker-1")
FLEET = """\
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: worker-1}
---
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: worker-2}
spec: {engine: ENGINE}
"""
REPO = "https://charts.example.com/stack"
ENGINE = "vllm-stack/templates/engine.yaml"


def released(objects: dict[str, dict[str, Any]] | None = None, **parts: Any) -> HelmRelease:
    content = document(**parts, **({"manifest": manifest(objects)} if objects else {}))
    made = sourced_objects(content["manifest"], "it")
    return read_release(content, [ChartObject(manifest=each, source=source) for source, each in made], "Secret x")


def assembled(texts: dict[str, str]) -> Desired:
    return assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in texts.items()})


def lent(release: HelmRelease, *, engine: str = "argocd", value: str | None = None) -> LentFiles:
    chosen = choose_workload(release, None, NO_KINDS)
    chart = ReleasedChart(
        release=release,
        repo_url=REPO,
        workload=chosen,
        value=replica_value(release, chosen, NO_KINDS, value),
    )
    live = LiveWorkload(primary=PRIMARY, manifest=in_namespace(release, chosen).manifest, chart=chart)
    fleet = assembled({"clusters/all.yaml": FLEET.replace("ENGINE", engine)})
    return lent_files(live, fleet, workspace=None, policy={})


def template(files: LentFiles) -> Any:
    return yaml.parse(files.files[files.template].encode(), files.template)[0].value


def test_a_release_becomes_its_chart_with_the_values_of_its_user() -> None:
    files = lent(released())
    written = template(files)
    assert files.template == "templates/vllm.yaml"
    assert written["metadata"]["annotations"] == {"overspill.dev/workload": "Deployment/demo/vllm-engine"}
    assert written["spec"] == {
        "workspaceName": "demo",
        "namespaces": ["demo"],
        "helmConfig": [
            {
                "name": "vllm",
                "chart": "vllm-stack",
                "repoURL": REPO,
                "version": "0.1.7",
                "releaseName": "vllm",
                "releaseNamespace": "demo",
                "values": {
                    "engine": {
                        "model": "llama",
                        "chat": "{% raw %}{{ messages }}{% endraw %}",
                        "replicaCount": "{{ replicas }}",
                    }
                },
            }
        ],
        "steps": [{"name": "vllm", "type": "helm"}],
    }
    desired = assembled({"clusters/all.yaml": FLEET.replace("ENGINE", "argocd"), **files.files})
    assert [problem for problem in desired.problems if problem.severity is Severity.ERROR] == []
    made = desired.templates[WorkloadId(WorkspaceName("demo"), TemplateName("vllm"))]
    assert (made.uses_replicas, made.copy) == (True, None)
    assert (made.ref and made.ref.kind, made.ref and made.ref.name) == ("Deployment", "vllm-engine")


def test_a_chart_may_put_its_workload_into_another_namespace() -> None:
    made = workload("vllm-engine", 2, GPU)
    made["metadata"] |= {"namespace": "gpu"}
    files = lent(released({ENGINE: made}))
    assert template(files)["metadata"]["annotations"] == {"overspill.dev/workload": "Deployment/gpu/vllm-engine"}
    assert template(files)["spec"]["namespaces"] == ["demo", "gpu"]
    desired = assembled({"clusters/all.yaml": FLEET.replace("ENGINE", "argocd"), **files.files})
    assert [problem for problem in desired.problems if problem.severity is Severity.ERROR] == []


def test_what_comes_along_with_a_chart_is_told() -> None:
    secretive = {**GPU, "volumes": [{"name": "t", "secret": {"secretName": "token"}}]}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "vllm"}}
    objects = {**OBJECTS, ENGINE: workload("vllm-engine", 2, secretive), "vllm-stack/templates/hpa.yaml": scaler}
    chart = document()["chart"] | {"files": [{"name": "crds/routers.yaml", "data": ""}]}
    notes = lent(released(objects, chart=chart, hooks=[{"name": "check"}])).notes
    assert notes == (
        "with each burst comes along deployment/vllm-router, in numbers of the chart's own",
        "claim models: each cluster has its own, which begins empty",
        "horizontalpodautoscaler/vllm: comes along, and may scale a burst by itself; turn it off in the values",
        (
            "for a whole cluster: clusterrole/vllm; the engine needs the right to make that, and another release of the"
            " chart may have it already: see whether a value leaves it out"
        ),
        "release demo/vllm: its chart brings CustomResourceDefinitions, which stay once a burst has ended",
        "release demo/vllm: 1 hook of its chart run on each cluster as well",
        "Secret demo/token: not copied, since no secret belongs in git; each cluster of a burst has to have it",
        "ServiceAccount demo/router: not made by the chart; each cluster of a burst has to have it",
    )


def test_rules_of_charts_are_told_where_overspill_renders_them() -> None:
    assert not [note for note in lent(released()).notes if "refuses this chart" in note]
    (note,) = [note for note in lent(released(), engine="manifests").notes if "ClusterRole" in note]
    assert note.startswith("engine manifests refuses this chart as it is: the chart makes ClusterRole vllm: ")


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"hf": {"token": "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345"}}, "hf.token"),
        ({"env": [{"name": "DB_PASSWORD", "value": "hunter-2-sesame"}]}, "env[0].value"),
    ],
)
def test_a_value_that_looks_like_a_secret_is_refused_with_its_path(values: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lent(released(config=values))
    message = str(caught.value)
    assert message.startswith(f"values of release demo/vllm: {place}: this looks like a")
    assert "then pass the values with --values FILE" in message
    assert "sesame" not in message
    assert "hf_A" not in message


def test_value_of_the_replicas_is_that_which_the_template_reads() -> None:
    release = released()
    value = replica_value(release, release.objects[0], NO_KINDS, None)
    assert (value.path, value.because) == (("engine", "replicaCount"), "")


def test_value_of_the_replicas_is_found_by_name_and_number_without_a_template() -> None:
    release = replace(released(), templates={}, values={"models": [{"name": "a", "replicaCount": 2}]})
    value = replica_value(release, release.objects[0], NO_KINDS, None)
    assert (value.path, value.because) == (("models", "0", "replicaCount"), "by its name and number")
    (note,) = [note for note in lent(release).notes if "sets the replicas" in note]
    assert note.startswith("values.models.0.replicaCount: sets the replicas of deployment/vllm-engine, by its name")


def test_values_that_might_set_the_replicas_are_listed_where_it_is_open() -> None:
    two = {"a": {"replicas": 2}, "b": {"replicas": 2}}
    release = replace(released(), templates={}, values=two)
    with pytest.raises(InvalidInput, match=r"it is open which value .* \(try one of a.replicas, b.replicas;"):
        replica_value(release, release.objects[0], NO_KINDS, None)
    assert replica_value(release, release.objects[0], NO_KINDS, "b.replicas").path == ("b", "replicas")
    assert replica_value(release, release.objects[0], NO_KINDS, "a[0].replicas").path == ("a", "0", "replicas")
    for wrong in ("a.replicas.x", "a", "", "engine.model"):
        with pytest.raises(InvalidInput, match="no number stands at"):
            replica_value(release, release.objects[0], NO_KINDS, wrong)


def test_workload_without_a_value_of_its_replicas_goes_out_in_copies() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {"template": {"spec": GPU}}}
    files = lent(released({"vllm-stack/templates/job.yaml": job}))
    assert template(files)["metadata"]["annotations"]["overspill.dev/replicas"] == "fixed"
    assert (
        "job/train: no value of the chart sets its replicas, so each placement is one copy of 1 replica" in files.notes
    )
    fixed = template(lent(released(), value="fixed"))
    assert fixed["metadata"]["annotations"]["overspill.dev/replicas"] == "2"
    assert "replicaCount" not in fixed["spec"]["helmConfig"][0]["values"]["engine"]


def test_list_that_only_the_chart_has_is_copied_whole() -> None:
    defaults = {"models": [{"name": "{{ a }}", "replicaCount": 1}, {"name": "b"}], "other": 1}
    made = with_value({"x": 1}, defaults, ("models", "0", "replicaCount"), "new")
    assert made == {"x": 1, "models": [{"name": "{{ a }}", "replicaCount": "new"}, {"name": "b"}]}
    assert with_value({}, {}, ("a", "b"), 1) == {"a": {"b": 1}}


def test_workload_that_bursts_is_the_one_with_gpus_or_the_one_that_is_named() -> None:
    release = released()
    assert choose_workload(release, None, NO_KINDS).name == "vllm-engine"
    named = find_kind("deployment", NO_KINDS), "vllm-router"
    assert choose_workload(release, named, NO_KINDS).name == "vllm-router"
    with pytest.raises(InvalidInput, match=r"has no Deployment vllm-enigne \(try 'deployment/vllm-engine'\)"):
        choose_workload(release, (named[0], "vllm-enigne"), NO_KINDS)
    several = {ENGINE: workload("a", 1, GPU), "vllm-stack/templates/b.yaml": workload("b", 1, GPU)}
    with pytest.raises(InvalidInput, match=r"say which bursts with --counted: deployment/a, deployment/b"):
        choose_workload(released(several), None, NO_KINDS)
    with pytest.raises(InvalidInput, match="no workload that could burst"):
        choose_workload(released({"x": of_cluster("ClusterRole", "vllm")}), None, NO_KINDS)


def test_only_workload_needs_no_gpus() -> None:
    assert choose_workload(released({"x": workload("web", 1, CPU)}), None, NO_KINDS).name == "web"


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 70 + b"]" * 70,
        b"nothing",
        gzip.compress(b"[1]"),
        gzip.compress(b"{"),
        gzip.compress(b"{}")[:12],
        b"\x1f\x8b broken",
    ],
    ids=["too deep", "base64 alone", "a list", "no JSON", "cut off", "no gzip"],
)
def test_secret_that_holds_no_release_is_told(content: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"Secret sh.helm.release.v1.vllm.v3 is no release of Helm"):
        release_document(secret(content))


def test_release_without_compression_is_read_as_helm_does() -> None:
    assert release_document(secret(json.dumps(document()).encode()))["name"] == "vllm"


def test_release_that_unpacks_to_more_than_the_limit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is over 64 MiB without compression"):
        release_document(secret(gzip.compress(b" " * (MAX_BYTES + 2))))


def test_secret_of_another_type_is_no_release() -> None:
    with pytest.raises(InvalidInput, match="is no release"):
        release_document({**secret(document()), "type": "Opaque"})


def test_release_without_a_chart_is_told() -> None:
    with pytest.raises(InvalidInput, match="Secret x names no chart and version"):
        released(chart={"metadata": {}})


def test_chart_is_told_by_the_label_of_its_objects() -> None:
    assert chart_of([ChartObject(manifest=OBJECTS[ENGINE])]) == ("vllm-stack", "0.1.7+build.2")
    assert chart_of([ChartObject(manifest=of_cluster("ClusterRole", "vllm"))]) == ("", "")


def test_values_are_taken_with_the_heading_of_helm_and_without() -> None:
    assert user_values({"USER-SUPPLIED VALUES": None, "a": 1}) == {"a": 1}
    assert user_values(None) == {}
    with pytest.raises(InvalidInput, match="the values are no mapping"):
        user_values([1])


def test_object_of_a_release_says_how_its_chart_is_lent() -> None:
    made = dict(OBJECTS[ENGINE])
    made["metadata"] = {
        "name": "vllm",
        "namespace": "demo",
        "annotations": {"meta.helm.sh/release-name": "vllm", "meta.helm.sh/release-namespace": "demo"},
    }
    live = LiveWorkload(primary=PRIMARY, manifest=made)
    notes = lent_files(live, assembled({"clusters/all.yaml": FLEET.replace("ENGINE", "argocd")}), workspace=None).notes
    assert (
        "Deployment demo/vllm: it is of the Helm release vllm; `overspill lend release/vllm --namespace demo` writes a"
        " template of the chart instead"
    ) in notes
