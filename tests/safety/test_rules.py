"""What may not be deployed, and what looks like it but may."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from reconciler.core.expressions import render
from reconciler.core.safety import rules
from reconciler.errors import Severity
from reconciler.model.workload import DeletionPolicy, DeploySpec
from tests.builders.deploy_specs import CONFIG, JOBS, WEB, WORKSPACE, chart, context, spec

# Put together here, so that no scanner takes this file for a leak.
GITHUB = "ghp" + "_" + "a1B2" * 9
OURS = "ovs" + "_" + "aB3-" * 10 + "xyz"
HUGGING_FACE = "hf" + "_" + "aB3d" * 8
AWS = "AKIA" + "ABCDEFGH" * 2
JWT = ".".join(["ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiIxMjM0In0", "s1gn4tur3" * 3])
KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\n"
RANDOM = "q9Zk3VbX7mTn2LwR8pYc5HsJ4gDf6AeU"


def findings(*parts, workspace=WORKSPACE, **more):
    return rules.check_safety(spec(*parts, **more), workspace)


def only(*parts, **more):
    (finding,) = findings(*parts, **more)
    return finding


def test_an_ordinary_template_has_nothing_to_find():
    assert findings(chart(), ("web", WEB), ("settings", CONFIG)) == ()
    assert rules.check_safety(DeploySpec(), WORKSPACE) == ()


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (GITHUB, "a GitHub token"),
        (f"https://x-access-token:{GITHUB}@git.example.com/a", "a password in a URL"),
        (HUGGING_FACE, "a Hugging Face token"),
        (OURS, "an Overspill token"),
        (AWS, "an AWS key"),
        (f"--token {JWT}", "a signed token"),
        (KEY, "a private key"),
        ("postgres://app:s3cr3tpw@db.example.com/app", "a password in a URL"),
        ("Authorization: Bearer " + "abc123" * 4, "an authorization header"),
        (RANDOM, "a random key"),
    ],
)
@pytest.mark.parametrize("place", ["values", "manifest", "command"])
def test_a_credential_is_found_wherever_it_stands_and_never_repeated(value, what, place):
    if place == "values":
        finding = only(chart(values={"a": [{"b": value}]}))
        assert finding.loc == ("spec", "helmConfig", 0, "values", "a", 0, "b")
    elif place == "manifest":
        finding = only(("settings", {**CONFIG, "data": {"b": value}}))
        assert finding.loc == ("spec", "manifestResources", 0, "manifest", "data", "b")
    elif "\n" in value or " " in value:
        return
    else:
        finding = only(("make", f"kubectl create cm a -n tools --from-literal=b={value}"))
        assert finding.loc == ("spec", "cmdExec", 0, "cmd")
    assert finding.message == f"this looks like {what}, which may not lie in git"
    assert value not in finding.message + finding.hint


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"password": "hunter22"}, "a password"),
        ({"dbPassword": "correct horse"}, "a password"),
        ({"api_key": "abcdef123456"}, "a token"),
        ({"hf_token": "notreally0123"}, "a token"),
        ({"env": [{"name": "HF_TOKEN", "value": "notreally0123"}]}, "a token"),
        ({"env": [{"name": "DB_PASSWORD", "value": "hunter22"}]}, "a password"),
        ({"url": "postgres://$(USER):s3cr3tpw@db.example.com/app"}, "a password in a URL"),
        ({"url": "postgres://{{ cluster.name }}:s3cr3tpw@db.example.com/app"}, "a password in a URL"),
    ],
)
def test_a_value_is_judged_by_the_name_it_stands_under(values, what):
    assert only(chart(values=values)).message == f"this looks like {what}, which may not lie in git"


@pytest.mark.parametrize(
    "values",
    [
        {"hf_token": "<your-huggingface-token>"},
        {"hf_token": "${HF_TOKEN}"},
        {"hf_token": "{{ cluster.labels.token }}"},
        {"url": "postgres://$(USER):$(PASS)@db.example.com/app"},
        {"password": "ENC[AES256_GCM,data:aaaa,iv:bbbb,tag:cccc,type:str]"},
        {"password": "vault:secret/data/app#password"},
        {"password": "changeme"},
        {"password": ""},
        {"existingSecret": "vllm-hf-token"},
        {"secret": "vllm-hf-token-2"},
        {"tokenSecretRef": {"name": "vllm-token", "key": "token"}},
        {"env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]},
        {"maxTokens": "4096", "tokenizer": "meta-llama/Llama-3.2-1B-Instruct"},
        {"image": "registry.example.com/a/b@sha256:" + "0a" * 32},
        {"checksum": "sha256:" + "0a" * 32, "commit": "0a" * 20},
        {"url": "https://example.com/a/very/long/path/that/goes/on/And/On/For/Ever/1"},
        {"modelURL": "TheBloke/deepseek-llm-7B-chat-AWQ-with-a-long-name"},
    ],
)
def test_what_only_points_to_a_secret_passes(values):
    assert findings(chart(values=values)) == ()


def test_a_secret_with_data_is_refused_and_one_that_is_sealed_is_not():
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    for data in ({"data": {"a": "Yg=="}}, {"stringData": {"a": "b"}}):
        finding = only(("s", secret | data))
        assert finding.message == "a Secret with data may not lie in git"
        assert "ExternalSecret" in finding.hint
    sops = {"sops": {"mac": "ENC[a]"}}
    assert findings(("s", secret)) == ()
    assert findings(("s", secret | {"data": {"a": "ENC[AES256_GCM,data:x]"}} | sops)) == ()
    assert len(findings(("s", secret | {"data": {"a": "ENC[x]", "b": "Yg=="}} | sops))) == 1
    sealed = {"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": {"name": "a"}}
    assert findings(("s", sealed | {"spec": {"encryptedData": {"a": "AgBy3i4OJSWK"}}})) == ()
    external = {"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": "a"}}
    assert findings(("s", external | {"spec": {"data": [{"secretKey": "a", "remoteRef": {"key": "b"}}]}})) == ()


NAMES = {"plural": "tools", "kind": "Tool"}
REQUIRED = {
    "RoleBinding": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tools"}},
    "PriorityClass": {"value": 1},
    "CustomResourceDefinition": {
        "spec": {"group": "example.com", "names": NAMES, "scope": "Namespaced", "versions": []}
    },
}


@pytest.mark.parametrize(
    ("version", "kind", "message"),
    [
        ("rbac.authorization.k8s.io/v1", "RoleBinding", "RoleBinding grants rights (RBAC), which templates may not"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "ClusterRole grants rights (RBAC), which templates may not"),
        ("argoproj.io/v1alpha1", "Application", "Application steers Argo CD, which templates may not"),
        ("authorization.openshift.io/v1", "RoleBinding", "RoleBinding grants rights (RBAC), which templates may not"),
        ("argoproj.io/v1beta1", "ArgoCD", "ArgoCD steers Argo CD, which templates may not"),
        ("argoproj.io/v1alpha1", "ApplicationSet", "ApplicationSet steers Argo CD, which templates may not"),
        ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "Kustomization steers Flux, which templates may not"),
        ("helm.toolkit.fluxcd.io/v2", "HelmRelease", "HelmRelease steers Flux, which templates may not"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "CustomResourceDefinition defines a kind"),
        ("v1", "Namespace", "Namespace belongs to the whole cluster, which templates may not"),
        ("v1", "PersistentVolume", "PersistentVolume belongs to the whole cluster, which templates may not"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "MutatingWebhookConfiguration belongs"),
        ("scheduling.k8s.io/v1", "PriorityClass", "PriorityClass belongs to the whole cluster"),
        ("cert-manager.io/v1", "ClusterIssuer", "ClusterIssuer belongs to the whole cluster"),
    ],
)
def test_a_kind_that_steers_others_is_refused_unless_the_workspace_allows_it(version, kind, message):
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "tools"}, **REQUIRED.get(kind, {})}
    group_kind = f"{version.rpartition('/')[0]}/{kind}"
    finding = only(("it", manifest))
    assert finding.message.startswith(message)
    assert finding.hint == f"the workspace's allowedKinds would have to hold {group_kind}"
    assert finding.loc == ("spec", "manifestResources", 0, "manifest", "kind")
    assert findings(("it", manifest), workspace=replace(WORKSPACE, allowed_kinds=(group_kind,))) == ()


@pytest.mark.parametrize(
    "kind", ["argoproj.io/v1alpha1 Rollout", "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet", "ray.io/v1 RayCluster"]
)
def test_other_peoples_workloads_are_welcome(kind):
    version, kind = kind.split()
    assert findings(("it", {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})) == ()


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"kind": "ConfigMap", "metadata": {"name": "a"}}, "the manifest is no Kubernetes object"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "the object has no name"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}, "the object has no name"),
        ({"apiVersion": "v1", "kind": "List", "metadata": {"name": "a"}, "items": []}, "a List is many objects"),
        ({**CONFIG, "kind": "ConfigMapList", "items": []}, "a List is many objects"),
        ({**CONFIG, "items": [CONFIG]}, "to engines an object with items is many objects"),
        ({**CONFIG, "kind": "A" * 64}, f"'{'A' * 64}' is no kind of Kubernetes"),
        ({**CONFIG, "kind": "Config\\Map"}, "'Config\\\\Map' is no kind of Kubernetes"),
        ({**CONFIG, "kind": "../Map"}, "'../Map' is no kind of Kubernetes"),
        ({**CONFIG, "apiVersion": "rbac.authorization.k8s.io./v1"}, "'rbac.authorization.k8s.io./v1' is no apiVersion"),
        ({**CONFIG, "apiVersion": "a/b/v1"}, "'a/b/v1' is no apiVersion of Kubernetes"),
        ({**CONFIG, "metadata": {"name": "a" * 254}}, "'aaaaaaaa"),
        ({**CONFIG, "metadata": {"name": "a/b"}}, "'a/b' cannot be the name of an object"),
        ({**CONFIG, "metadata": {"name": ["a"]}}, "the object has no name"),
        ({**CONFIG, "data": {"a": "\ud800"}}, "the text holds half a character"),
        ({**CONFIG, "data": {"\ud800": "a"}}, "the text holds half a character"),
        (
            {**CONFIG, "kind": "Secret", "type": "kubernetes.io/service-account-token", "data": {}},
            "a Secret of this type is filled with the token of a service account",
        ),
        (
            {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "metadata": {"name": "a"}},
            "a kustomization is an instruction to the engine, not an object",
        ),
        (
            {**CONFIG, "data": {"a": "# +argocd:skip-file-rendering"}},
            "the text '+argocd:skip-file-rendering' would make",
        ),
        ({**CONFIG, "data": {"+argocd:skip-file-rendering": ""}}, "the text '+argocd:skip-file-rendering' would make"),
    ],
)
def test_what_is_no_plain_object_is_refused(manifest, message):
    assert only(("it", manifest)).message.startswith(message)


def test_namespaces_outside_the_workspace_are_refused_everywhere():
    elsewhere = {**CONFIG, "metadata": {"name": "a", "namespace": "kube-system"}}
    found = findings(
        chart(release_namespace="kube-system"),
        ("it", elsewhere),
        ("make", "kubectl create ns kube-system"),
        ("config", "kubectl create cm a -n kube-system --from-literal=a=b"),
        ("mark", "kubectl label cm a b=c -n kube-system"),
        ("look", "kubectl get pods -n kube-system"),
        ("run", "kubectl delete pod a -n kube-system"),
        workspace=replace(WORKSPACE, command_jobs=JOBS),
        service_account="vllm-sa",
    )
    assert [finding.loc[1:] for finding in found] == [
        ("helmConfig", 0, "releaseNamespace"),
        ("manifestResources", 0, "manifest", "metadata", "namespace"),
        *(("cmdExec", index, "cmd") for index in range(5)),
    ]
    assert {finding.message for finding in found} == {"'kube-system' is no namespace of workspace llm"}
    assert {finding.hint for finding in found} == {"it has vllm-demo, tools"}


def test_a_workspace_without_namespaces_bounds_none():
    elsewhere = {**CONFIG, "metadata": {"name": "a", "namespace": "anywhere"}}
    assert findings(("it", elsewhere), workspace=replace(WORKSPACE, namespaces=())) == ()
    bad = {**CONFIG, "metadata": {"name": "a", "namespace": "../x"}}
    assert "cannot be the name" in only(("it", bad), workspace=replace(WORKSPACE, namespaces=())).message


@pytest.mark.parametrize("version", ["", "*", "^1.2.3", "1.x", ">=1.0.0", "1.2", "latest"])
def test_a_chart_that_is_not_pinned_is_refused_unless_the_workspace_allows_it(version):
    assert only(chart(version=version)).loc == ("spec", "helmConfig", 0, "version")
    assert findings(chart(version=version), workspace=replace(WORKSPACE, allow_unpinned_charts=True)) == ()


@pytest.mark.parametrize("version", ["0.1.7", "v1.2.3", "1.2.3-rc.1", "1.2.3+build.5"])
def test_one_version_is_a_pinned_chart(version):
    assert findings(chart(version=version)) == ()


@pytest.mark.parametrize("name", ["", "Vllm", "a_b", "-a", "a" * 54])
def test_a_release_name_is_one_that_helm_takes(name):
    assert only(chart(release_name=name)).loc == ("spec", "helmConfig", 0, "releaseName")


def test_a_command_without_a_place_to_run_is_refused_with_its_way_out():
    finding = only(("drop", "kubectl delete pod a"))
    assert finding.message == "'kubectl delete' would have to run in the cluster, and the workspace has no command Jobs"
    assert (
        findings(
            ("drop", "kubectl delete pod a"), workspace=replace(WORKSPACE, command_jobs=JOBS), service_account="vllm-sa"
        )
        == ()
    )


def test_a_number_where_kubernetes_takes_a_text_is_found_before_the_cluster_does():
    web = {
        **WEB,
        "metadata": {"name": 3, "labels": {"app": True}, "annotations": {"a": 1.5, "b": "1.5"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "initContainers": [
                        {"name": "a", "image": "a", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": 1}]}
                    ],
                    "containers": [
                        {"name": "b", "image": "b", "env": [{"name": "A", "valueFrom": None}]},
                        {"name": "c", "image": "c"},
                        {"name": "d", "image": "d", "env": [{"name": "C", "value": False}]},
                    ],
                },
            },
        },
    }
    found = findings(("web", web), ("settings", {**CONFIG, "data": {"a": 1, "b": "1"}}))
    assert [(finding.loc[4:], finding.message[-12:]) for finding in found] == [
        (("metadata", "name"), " here, not 3"),
        (("metadata", "labels", "app"), "re, not true"),
        (("metadata", "annotations", "a"), "ere, not 1.5"),
        (("spec", "template", "spec", "initContainers", 0, "env", 1, "value"), " here, not 1"),
        (("spec", "template", "spec", "containers", 2, "env", 0, "value"), "e, not false"),
        (("data", "a"), " here, not 1"),
    ]
    assert {finding.hint for finding in found} == {"quote it, or end the expression with | string"}


def test_leaves_that_are_expressions_are_left_until_they_are_rendered():
    manifest = {**CONFIG, "metadata": {"name": "{{ placement.name }}", "namespace": "{{ template.namespace }}"}}
    assert (
        findings(
            chart(release_name="{{ placement.name }}", release_namespace="{{ template.namespace }}"),
            ("it", manifest),
            ("run", "kubectl {{ cluster.name }}"),
        )
        == ()
    )


def test_the_objects_of_a_rendered_chart_are_held_to_the_same_rules():
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}}
    found = rules.check_chart_objects((CONFIG, role, secret), ("spec", "helmConfig", 0), WORKSPACE)
    assert [finding.message for finding in found] == [
        "the chart makes Role r: Role grants rights (RBAC), which templates may not",
        "the chart makes Secret s: a Secret with data may not lie in git",
    ]


@pytest.mark.parametrize(
    "values",
    [
        lambda parts: {"a": "-eyJaaaaaaaa" * 10_000 * parts},
        lambda parts: {"a" * 50_000 * parts: ["aaaa"] * 10_000 * parts},
    ],
    ids=["halves of tokens", "a list under a long name"],
)
def test_what_is_long_takes_work_that_grows_with_its_length_and_not_with_its_square(values):
    def work(parts: int) -> float:
        started = time.process_time()
        assert findings(chart(values=values(parts))) == ()
        return time.process_time() - started

    assert work(8) < 20 * min(work(1) for _ in range(3)) + 0.1  # eight times as much is linear, 64 times its square


def test_a_long_name_is_judged_by_its_end():
    assert only(chart(values={"x" * 300 + "Password": "hunter22"})).message.startswith("this looks like a password")


def test_braces_that_an_expression_has_made_put_nothing_off():
    deployed = spec(
        ("it", {**CONFIG, "metadata": {"name": "a", "namespace": "{% raw %}{{{% endraw %}"}}),
        ("make", "kubectl create cm evil -n kube-system --from-literal=a={{ '{{' }}"),
        chart(release_name="{{ '{{' }}"),
    )
    assert rules.check_safety(deployed, WORKSPACE) == ()
    found = rules.check_safety(render.render(deployed, context(deployed)), WORKSPACE, rendered=True)
    assert [finding.message for finding in found] == [
        "'{{' cannot name a release",
        "'{{' cannot be the name of a namespace",
        "'kube-system' is no namespace of workspace llm",
    ]


@pytest.mark.parametrize(
    ("cmd", "message"),
    [
        (
            "kubectl create cm a --from-literal=b='+argocd:'skip-file-rendering",
            "the text '+argocd:skip-file-rendering'",
        ),
        ("kubectl delete pod '+argocd:'skip-file-rendering", "the text '+argocd:skip-file-rendering'"),
        ("kubectl create cm a --from-literal=x='" + GITHUB[:9] + "'" + GITHUB[9:], "this looks like a GitHub token"),
        ("kubectl delete pod " + GITHUB[:9] + "''" + GITHUB[9:], "this looks like a GitHub token"),
        ("kubectl create cm a/b --from-literal=b=c", "'a/b' cannot be the name of an object"),
        ("kubectl create cm a --from-literal=b=\ud800", "the text holds half a character"),
        ("kubectl delete pod \ud800", "the text holds half a character"),
    ],
)
def test_what_a_command_becomes_is_held_to_the_same_rules(cmd, message):
    finding = only(("it", cmd), workspace=replace(WORKSPACE, command_jobs=JOBS), service_account="vllm-sa")
    assert finding.message.startswith(message)
    assert finding.loc == ("spec", "cmdExec", 0, "cmd")


def test_half_a_character_from_an_expression_is_found_in_every_kind_of_text():
    half = '{{ "\\ud800" }}'
    deployed = spec(
        chart(release_name=half, values={"a": half}), ("it", {**CONFIG, "metadata": {"name": half}}), ("run", half)
    )
    found = rules.check_safety(render.render(deployed, context(deployed)), WORKSPACE, rendered=True)
    assert {finding.loc[1] for finding in found} == {"helmConfig", "manifestResources", "cmdExec"}
    assert "\ud800" not in "".join(finding.message + finding.hint for finding in found)


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"repo_url": "https://bot:s3cr3tpw@charts.example.com"}, "repoURL", "a URL may not hold a user or a password"),
        ({"repo_url": "https://bot@charts.example.com/a"}, "repoURL", "a URL may not hold a user or a password"),
        ({"repo_url": f"https://charts.example.com/{GITHUB}"}, "repoURL", "this looks like a GitHub token"),
        ({"chart": f"oci://{HUGGING_FACE}@registry.example.com/a"}, "chart", "a URL may not hold a user or a password"),
        ({"version": f"1.2.3-{GITHUB}", "repo_url": "oci://r.example.com/a@b"}, "version", "this looks like a GitHub"),
    ],
)
def test_where_a_chart_comes_from_holds_no_credentials(changes, field, message):
    found = findings(chart(**changes), workspace=replace(WORKSPACE, allow_unpinned_charts=True))
    assert [(finding.loc, finding.message[: len(message)]) for finding in found] == [
        (("spec", "helmConfig", 0, field), message)
    ]


def test_an_object_may_not_stay_behind_unless_the_whole_template_does():
    annotation = "argocd.argoproj.io/sync-options"
    manifest = {**CONFIG, "metadata": {"name": "a", "annotations": {annotation: "Prune=false"}}}
    finding = only(("it", manifest))
    assert finding.loc == ("spec", "manifestResources", 0, "manifest", "metadata", "annotations", annotation)
    assert finding.hint == "set deletionPolicy: Retain for the whole template"
    assert findings(("it", manifest), deletion_policy=DeletionPolicy.RETAIN) == ()


IDLE = {
    "a gate": (
        "kubectl get configmap model-ready -n vllm-demo",
        {},
        (
            "step gate does not run, and the steps after it do not wait for it: it only reads, and the "
            "workspace has no command Jobs (set commandJobs in the Workspace if it is a gate, or leave its step out)"
        ),
    ),
    "a gate without an account": (
        "kubectl get configmap model-ready -n vllm-demo",
        {"command_jobs": JOBS},
        (
            "step gate does not run, and the steps after it do not wait for it: it only reads, and a command "
            "Job needs a service account of its own (set spec.serviceAccount)"
        ),
    ),
    "a dry run": (
        "kubectl apply -f x.yaml --dry-run=client",
        {"command_jobs": JOBS},
        "step gate does not run: it would change nothing (leave its step out)",
    ),
}


@pytest.mark.parametrize(("cmd", "fields", "told"), IDLE.values(), ids=IDLE)
def test_a_command_step_that_runs_nowhere_is_told_with_what_does_not_wait_for_it(cmd, fields, told):
    finding = only(("gate", cmd), workspace=replace(WORKSPACE, **fields))
    assert finding.severity is Severity.WARNING
    assert finding.loc == ("spec", "cmdExec", 0, "cmd")
    assert f"{finding.message} ({finding.hint})" == told


def test_a_command_that_runs_as_a_job_or_is_an_object_is_not_told():
    jobs = replace(WORKSPACE, command_jobs=JOBS)
    assert findings(("gate", "kubectl get cm a -n tools"), workspace=jobs, service_account="vllm-sa") == ()
    assert findings(("make", "kubectl create cm a -n tools --from-literal=b=c")) == ()


def test_a_service_account_that_no_command_uses_is_told():
    finding = only(("make", "kubectl create cm a -n tools --from-literal=b=c"), service_account="vllm-sa")
    assert finding.loc == ("spec", "serviceAccount")
    assert finding.message.startswith("has no effect: none of its commands runs as a Job")
