"""Commands of a template: objects, Jobs, nothing, or a refusal; never executed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.safety import commands
from reconciler.core.safety.commands import JobCommand, ObjectCommand, ReadOnlyCommand, RefusedCommand
from reconciler.model.ids import PlacementName, is_name
from reconciler.model.policy import CommandJobs
from tests.builders.deploy_specs import IMAGE, JOBS


@pytest.mark.parametrize(
    ("cmd", "manifest"),
    [
        (
            "kubectl create namespace test-ns",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-ns"}},
        ),
        (
            "kubectl create ns test-ns -o yaml",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-ns"}},
        ),
        (
            "kubectl create configmap settings --from-literal=a=1 --from-literal 'b=two words' -n vllm-demo",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "settings", "namespace": "vllm-demo"},
                "data": {"a": "1", "b": "two words"},
            },
        ),
        (
            "kubectl -n vllm-demo label deployment web tier=front team=llm --overwrite",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "vllm-demo", "labels": {"tier": "front", "team": "llm"}},
            },
        ),
        (
            'kubectl annotate cm/settings example.com/note="two words" --namespace=vllm-demo',
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": "settings",
                    "namespace": "vllm-demo",
                    "annotations": {"example.com/note": "two words"},
                },
            },
        ),
    ],
)
def test_a_command_that_is_plainly_an_object_becomes_one(cmd, manifest):
    outcome = commands.read_command(cmd)
    assert isinstance(outcome, ObjectCommand)
    assert outcome.manifest == manifest


def test_namespaces_and_marked_objects_outlive_the_placement_and_config_maps_do_not():
    kept = {
        cmd: commands.read_command(cmd).kept
        for cmd in ("kubectl create ns a", "kubectl label cm a b=c", "kubectl create cm a --from-literal=b=c")
    }
    assert list(kept.values()) == [True, True, False]


@pytest.mark.parametrize(
    "cmd",
    ["kubectl create ns test-ns --dry-run=client", "kubectl delete pod a --dry-run=server", "kubectl get pods -A"],
)
def test_a_command_that_changes_nothing_makes_nothing(cmd):
    outcome = commands.read_command(cmd)
    assert isinstance(outcome, ReadOnlyCommand)
    assert commands.refuse_command(outcome, None, "") is None
    assert commands.job_argv(outcome, None, "") == ()


def test_get_is_a_job_where_jobs_are_possible_and_a_dry_run_never_is():
    get, dry = (
        commands.read_command("kubectl get pods -n vllm-demo"),
        commands.read_command("kubectl create ns a --dry-run=client"),
    )
    assert commands.job_argv(get, JOBS, "vllm-sa") == ("kubectl", "get", "pods", "-n", "vllm-demo")
    assert commands.job_argv(get, JOBS, "") == ()
    assert commands.job_argv(dry, JOBS, "vllm-sa") == ()


@pytest.mark.parametrize(
    "cmd",
    [
        "kubectl label node worker-node1 gpu=true",
        "kubectl label ns vllm-demo gpu=true",
        "kubectl label deployment web tier-",
        "kubectl label deployment --all tier=front",
        "kubectl label pods -l app=web tier=front",
        "kubectl create configmap settings --from-file=a.txt",
        "kubectl create secret generic a --from-literal=b=c",
        "kubectl delete pod web-0",
        "kubectl apply -f https://example.com/all.yaml",
        "kubectl create ns a b",
        "kubectl delete pod a -nvllm-demo -lapp=web -ojson -R",
        "kubectl exec web-0 -n vllm-demo -- nginx -sreload",
        "kubectl",
    ],
)
def test_what_no_object_can_say_is_a_job_or_refused(cmd):
    outcome = commands.read_command(cmd)
    assert isinstance(outcome, JobCommand)
    refusal = commands.refuse_command(outcome, None, "vllm-sa")
    assert "would have to run in the cluster, and the workspace has no command Jobs" in refusal.message
    assert refusal.hint == "write it as a manifest, or set commandJobs in the Workspace"
    assert commands.refuse_command(outcome, JOBS, "vllm-sa") is None


@pytest.mark.parametrize(
    ("jobs", "account", "message"),
    [
        (CommandJobs(image="registry.example.com/kubectl:1.32"), "vllm-sa", "the image of command Jobs is not pinned"),
        (JOBS, "", "a command Job needs a service account of its own"),
        (JOBS, "default", "a command Job needs a service account of its own"),
    ],
)
def test_a_job_needs_a_pinned_image_and_an_account_of_its_own(jobs, account, message):
    assert commands.refuse_command(commands.read_command("kubectl delete pod a"), jobs, account).message == message


@pytest.mark.parametrize(
    ("cmd", "message"),
    [
        ("kubectl get pods | wc -l", "'|' needs a shell, and commands run without one"),
        ("kubectl get pods; reboot", "';' needs a shell, and commands run without one"),
        ("kubectl get pods && reboot", "'&' needs a shell, and commands run without one"),
        ("kubectl get pods > out", "'>' needs a shell, and commands run without one"),
        ("kubectl get $POD", "'$' needs a shell, and commands run without one"),
        ('kubectl get "$POD"', "'$' needs a shell, and commands run without one"),
        ('kubectl get "`id`"', "'`' needs a shell, and commands run without one"),
        ("kubectl get pods\nreboot", "a line break needs a shell, and commands run without one"),
        ("kubectl get 'pods", "the command line is broken: no closing quotation"),
        ("  ", "the command line is empty"),
        ("kubectl --kubeconfig=/root/x get pods", "the flag 'kubeconfig' points kubectl at another cluster"),
        ("kubectl --server https://example.com delete pod a", "the flag 'server' points kubectl at another cluster"),
        ("bash -c 'kubectl delete ns a'", "the command is not kubectl"),
        ("env kubectl delete ns a", "the command is not kubectl"),
        ("kubectl exec web-0 -n a -- /bin/sh -c 'id'", "'/bin/sh' starts a shell"),
        ("kubectl exec web-0 -n a -- busybox id", "'busybox' starts a shell"),
        ("kubectl delete pods --all -A", "the flag 'A' reaches beyond one namespace"),
        ("kubectl delete pods --all -A=true", "the flag 'A' reaches beyond one namespace"),
        ("kubectl delete pods --all --all-namespaces", "the flag 'all-namespaces' reaches beyond one namespace"),
        ("kubectl label pods --all a=b -A", "the flag 'A' reaches beyond one namespace"),
        ("kubectl delete --raw /api/v1/namespaces/a", "the flag 'raw' reaches beyond one namespace"),
        ("kubectl --as=system:admin delete pod a", "the flag 'as' makes kubectl act as another user"),
        ("kubectl delete pod a --as-group system:masters", "the flag 'as-group' makes kubectl act as another user"),
        ("kubectl delete pod x -wn kube-system", "the word that begins with '-w' may be several flags"),
        ("kubectl create cm a --from-literal=b", "each --from-literal needs a key of its own and a value"),
        ("kubectl create cm a --from-literal=b=1 --from-literal=b=2", "each --from-literal needs a key of its own"),
        ("kubectl label cm a b/c/d=e", "'b/c/d' cannot be the key of a label or annotation"),
    ],
)
def test_a_command_that_needs_a_shell_or_makes_no_sense_is_refused(cmd, message):
    outcome = commands.read_command(cmd)
    assert isinstance(outcome, RefusedCommand)
    assert outcome.message.startswith(message)
    assert commands.refuse_command(outcome, JOBS, "vllm-sa") is outcome


def test_what_is_quoted_is_no_shell():
    assert (
        commands.read_command("kubectl get pods -o jsonpath='{.items[*].x}|$;'").argv[-1] == "jsonpath={.items[*].x}|$;"
    )


@given(st.text(alphabet="kubectl geabn='\"\\|$-", max_size=60) | st.text(max_size=40))
def test_any_line_is_read_without_an_accident(cmd):
    assert isinstance(commands.read_command(cmd), RefusedCommand | ReadOnlyCommand | ObjectCommand | JobCommand)


@pytest.mark.parametrize("cmd", ["kubectl get secrets -A", "kubectl get pods -wn a", "kubectl get pods --as=admin"])
def test_a_check_that_reaches_too_far_is_no_job(cmd):
    assert commands.job_argv(commands.read_command(cmd), JOBS, "vllm-sa") == ()


def job(**changes):
    given = {"step": "get-pods", "words": ("kubectl", "get", "pods"), "image": IMAGE, "account": "vllm-sa"} | changes
    return commands.command_job(
        PlacementName(given.get("placement", "vllm-7f3a")),
        given.get("number", 1),
        given["step"],
        given["words"],
        image=given["image"],
        account=given["account"],
    )


def test_a_job_is_unprivileged_bounded_and_runs_without_a_shell():
    made = job()
    assert made["metadata"]["namespace"] == "kubeslice-system"
    assert made["metadata"]["labels"] == {"overspill.dev/placement": "vllm-7f3a", "overspill.dev/step": "01"}
    assert "annotations" not in made["metadata"]  # no hook: it would run again with every sync
    assert made["spec"].keys() == {"backoffLimit", "activeDeadlineSeconds", "template"}  # no TTL: the same
    assert (made["spec"]["backoffLimit"], made["spec"]["activeDeadlineSeconds"]) == (1, 300)
    pod = made["spec"]["template"]["spec"]
    assert (pod["restartPolicy"], pod["serviceAccountName"]) == ("Never", "vllm-sa")
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = pod["containers"]
    assert container["command"] == ["kubectl", "get", "pods"]
    assert container["image"] == IMAGE
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"] == "256Mi"


@given(step=st.text(max_size=80), size=st.integers(1, 50), number=st.integers(1, 99))
def test_a_jobs_name_always_fits_and_keeps_its_hash(step, size, number):
    name = job(step=step, placement="p" * size, number=number)["metadata"]["name"]
    assert is_name(name)
    assert name.startswith(f"{'p' * size}-{number:02d}-")
    assert re.search(r"-[0-9a-f]{8}$", name)


def test_another_command_image_or_account_is_another_job():
    names = {
        job(**changes)["metadata"]["name"]
        for changes in (
            {},
            {"words": ("kubectl", "get", "po ds")},
            {"words": ("kubectl", "get", "po", "ds")},
            {"image": "x" + IMAGE},
            {"account": "other"},
        )
    }
    assert len(names) == 5
    assert job()["metadata"]["name"] in names
