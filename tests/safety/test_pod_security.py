"""Pods keep to the Pod Security level of their workspace: each control with pods that pass and pods that do not."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.expressions import render
from reconciler.core.safety import rules
from reconciler.core.schema import yaml
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.kubernetes.workload_kind import EACH
from reconciler.model.policy import PodSecurity, Workspace
from reconciler.model.workload import Json
from reconciler.text.findings import Finding
from tests.builders.deploy_specs import WORKSPACE, context, spec
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load, workspace

BASELINE = PodSecurity.BASELINE
RESTRICTED = PodSecurity.RESTRICTED
STRICT = """
securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
containers:
- name: a
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"""
"""A pod that passes restricted, as YAML."""


def pod(text: str) -> dict[str, Any]:
    (document,) = yaml.parse(text.encode(), "pod.yaml")
    assert isinstance(document.value, dict)
    return document.value


def deployment(spec_: Json) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"replicas": 1, "template": {"spec": spec_}},
    }


def at_level(level: PodSecurity) -> Workspace:
    return replace(WORKSPACE, pod_security=level)


def beyond(findings: tuple[Finding, ...]) -> list[Finding]:
    """Leave out what else is wrong with an object that says little but what a control is about."""
    return [finding for finding in findings if finding.message.endswith("does not allow")]


def complaints(manifest: Json, level: PodSecurity) -> list[str]:
    found = beyond(rules.check_safety(spec(("it", manifest)), at_level(level)))
    assert all(finding.loc[:4] == ("spec", "manifestResources", 0, "manifest") for finding in found)
    assert all("podSecurity: " in finding.hint for finding in found)
    return [".".join(map(str, finding.loc[4:])).removeprefix("spec.template.spec.") for finding in found]


BASELINE_CONTROLS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "HostProcess": (
        "securityContext.windowsOptions.hostProcess",
        ("securityContext: {windowsOptions: {hostProcess: true}}",),
        ("securityContext: {windowsOptions: {hostProcess: false}}",),
    ),
    "Host Namespaces: network": ("hostNetwork", ("hostNetwork: true",), ("hostNetwork: false",)),
    "Host Namespaces: PID": ("hostPID", ("hostPID: true",), ("shareProcessNamespace: true",)),
    "Host Namespaces: IPC": ("hostIPC", ("hostIPC: true",), ("hostIPC: false",)),
    "HostPath Volumes": (
        "volumes.0.hostPath",
        ("volumes: [{name: a, hostPath: {path: /}}]", "volumes: [{name: a, hostPath: {path: /dev/shm}}]"),
        ("volumes: [{name: a, emptyDir: {medium: Memory}}]",),
    ),
    "Privileged Containers": (
        "containers.0.securityContext.privileged",
        ("containers: [{name: a, securityContext: {privileged: true}}]",),
        ("containers: [{name: a, securityContext: {privileged: false}}]",),
    ),
    "Capabilities": (
        "containers.0.securityContext.capabilities.add.0",
        tuple(
            f"containers: [{{name: a, securityContext: {{capabilities: {{add: [{name}]}}}}}}]"
            for name in ("SYS_ADMIN", "NET_ADMIN", "IPC_LOCK", "ALL", "NET_RAW")
        ),
        ("containers: [{name: a, securityContext: {capabilities: {add: [CHOWN, SYS_CHROOT]}}}]",),
    ),
    "Host Ports": (
        "containers.0.ports.0.hostPort",
        ("containers: [{name: a, ports: [{containerPort: 80, hostPort: 80}]}]",),
        ("containers: [{name: a, ports: [{containerPort: 80, hostPort: 0}]}]",),
    ),
    "Host Probes": (
        "containers.0.livenessProbe.httpGet.host",
        ("containers: [{name: a, livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}}]",),
        ("containers: [{name: a, livenessProbe: {httpGet: {port: 80}}}]",),
    ),
    "Lifecycle Hooks": (
        "containers.0.lifecycle.preStop.tcpSocket.host",
        ("containers: [{name: a, lifecycle: {preStop: {tcpSocket: {host: other, port: 1}}}}]",),
        ("containers: [{name: a, lifecycle: {preStop: {tcpSocket: {port: 1}}}}]",),
    ),
    "AppArmor": (
        "securityContext.appArmorProfile.type",
        ("securityContext: {appArmorProfile: {type: Unconfined}}",),
        ("securityContext: {appArmorProfile: {type: Localhost, localhostProfile: x}}",),
    ),
    "SELinux: type": (
        "securityContext.seLinuxOptions.type",
        ("securityContext: {seLinuxOptions: {type: spc_t}}",),
        ("securityContext: {seLinuxOptions: {type: container_t, level: 's0:c1,c2'}}",),
    ),
    "SELinux: user": (
        "securityContext.seLinuxOptions.user",
        ("securityContext: {seLinuxOptions: {user: system_u}}",),
        ("securityContext: {seLinuxOptions: {user: ''}}",),
    ),
    "SELinux: role": (
        "securityContext.seLinuxOptions.role",
        ("securityContext: {seLinuxOptions: {role: system_r}}",),
        ("securityContext: {seLinuxOptions: {role: ''}}",),
    ),
    "/proc Mount Type": (
        "containers.0.securityContext.procMount",
        ("containers: [{name: a, securityContext: {procMount: Unmasked}}]",),
        ("containers: [{name: a, securityContext: {procMount: Default}}]",),
    ),
    "Seccomp": (
        "securityContext.seccompProfile.type",
        ("securityContext: {seccompProfile: {type: Unconfined}}",),
        ("securityContext: {seccompProfile: {type: RuntimeDefault}}",),
    ),
    "Sysctls": (
        "securityContext.sysctls.0.name",
        ("securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}",),
        ("securityContext: {sysctls: [{name: net.ipv4.tcp_rmem, value: '1'}]}",),
    ),
}


@pytest.mark.parametrize("control", BASELINE_CONTROLS)
def test_each_control_of_baseline_refuses_what_it_forbids_at_its_field(control: str) -> None:
    field, violating, passing = BASELINE_CONTROLS[control]
    for text in violating:
        assert complaints(deployment(pod(text)), BASELINE) == [field]
        assert field in complaints(deployment(pod(text)), RESTRICTED)
        assert complaints(deployment(pod(text)), PodSecurity.PRIVILEGED) == []
    for text in passing:
        assert complaints(deployment(pod(text)), BASELINE) == []


RESTRICTED_CONTROLS = {
    "Volume Types": ("volumes.0.nfs", "volumes: [{name: a, nfs: {server: a, path: /}}]"),
    "Privilege Escalation": ("securityContext.allowPrivilegeEscalation", "allowPrivilegeEscalation: true"),
    "Running as Non-root": ("securityContext.runAsNonRoot", "runAsNonRoot: false"),
    "Running as Non-root user": ("securityContext.runAsUser", "runAsUser: 0"),
    "Capabilities: drop": ("securityContext.capabilities.drop", "capabilities: {drop: [NET_RAW]}"),
    "Capabilities: add": ("securityContext.capabilities.add.0", "capabilities: {drop: [ALL], add: [CHOWN]}"),
}


def test_a_pod_that_says_all_that_restricted_asks_for_passes() -> None:
    assert complaints(deployment(pod(STRICT)), RESTRICTED) == []
    served = pod(STRICT)
    served["containers"][0]["securityContext"]["capabilities"]["add"] = ["NET_BIND_SERVICE"]
    served["volumes"] = [{"name": "a", kind: {}} for kind in ("configMap", "csi", "ephemeral", "projected", "secret")]
    assert complaints(deployment(served), RESTRICTED) == []


@pytest.mark.parametrize("control", RESTRICTED_CONTROLS)
@pytest.mark.parametrize("part", ["containers", "initContainers", "ephemeralContainers"])
def test_each_control_of_restricted_refuses_what_it_forbids_in_every_container(control: str, part: str) -> None:
    field, text = RESTRICTED_CONTROLS[control]
    spec_ = pod(STRICT)
    if control == "Volume Types":
        spec_ |= pod(text)
        expected = field
    else:
        container = deepcopy(spec_["containers"][0])
        container["securityContext"] |= pod(text)
        spec_[part] = [container]
        expected = f"{part}.0.{field}"
    assert complaints(deployment(spec_), RESTRICTED) == [expected]
    assert complaints(deployment(spec_), BASELINE) == []


def test_a_pod_that_says_nothing_misses_four_things_of_restricted() -> None:
    missing = ["runAsNonRoot", "allowPrivilegeEscalation", "seccompProfile", "capabilities.drop"]
    assert complaints(deployment({"containers": [{"name": "a"}]}), RESTRICTED) == [
        f"containers.0.securityContext.{field}" for field in missing
    ]
    windows = {"os": {"name": "windows"}, "containers": [{"name": "a"}]}
    assert complaints(deployment(windows), RESTRICTED) == ["containers.0.securityContext.runAsNonRoot"]


@pytest.mark.parametrize("part", ["initContainers", "ephemeralContainers"])
def test_init_and_ephemeral_containers_are_containers(part: str) -> None:
    spec_ = {"containers": [{"name": "a"}], part: [{"name": "b", "securityContext": {"privileged": True}}]}
    assert complaints(deployment(spec_), BASELINE) == [f"{part}.0.securityContext.privileged"]


def test_older_annotations_for_profiles_count() -> None:
    for key in ("container.apparmor.security.beta.kubernetes.io/a", "seccomp.security.alpha.kubernetes.io/pod"):
        manifest = deployment({"containers": []})
        manifest["spec"]["template"]["metadata"] = {"annotations": {key: "unconfined"}}
        assert len(complaints(manifest, BASELINE)) == 1
        manifest["spec"]["template"]["metadata"]["annotations"][key] = "runtime/default"
        assert complaints(manifest, BASELINE) == []


def test_external_ips_of_a_service_are_refused() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"externalIPs": ["10.0.0.1"]}}
    assert complaints(service, BASELINE) == ["spec.externalIPs"]
    assert complaints(service, PodSecurity.PRIVILEGED) == []


def planted(path: tuple[str, ...], value: Json) -> Json:
    """Make the mapping in which a value stands at a path; a list of one item for each ``*``."""
    for part in reversed(path):
        value = [value] if part == EACH else {part: value}
    return value


def pod_specs() -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, kind in BUILT_IN.items():
        for template in kind.templates:
            if template.spec:
                yield name, template.spec
            if template.instead:
                yield name, template.instead


@pytest.mark.parametrize(("name", "path"), [*dict.fromkeys(pod_specs())])
def test_pods_of_every_known_kind_are_looked_at(name: str, path: tuple[str, ...]) -> None:
    group, _, kind = name.partition("/")
    version = (BUILT_IN[name].versions or ("v1",))[0]
    head = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, "metadata": {"name": "a"}}
    bad = {"hostPID": True, "containers": [{"name": "a", "securityContext": {"privileged": True}}]}
    body = {**head, **planted(path, bad)}
    told = beyond(rules.check_safety(spec(("it", body)), at_level(BASELINE)))
    assert [finding.loc[-1] for finding in told] == ["hostPID", "privileged"]
    strict = rules.check_safety(spec(("it", body)), at_level(RESTRICTED))
    assert any(finding.loc[-1] == "allowPrivilegeEscalation" for finding in strict)


def test_a_container_outside_of_a_list_is_one_too() -> None:
    served = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "a"},
        "spec": {"predictor": {"model": {"modelFormat": {"name": "x"}, "securityContext": {"privileged": True}}}},
    }
    assert complaints(served, BASELINE) == ["spec.predictor.model.securityContext.privileged"]
    assert "spec.predictor.model.securityContext.runAsNonRoot" in complaints(served, RESTRICTED)


def test_what_an_expression_decides_is_judged_once_it_is_rendered() -> None:
    manifest = deployment(pod("hostNetwork: \"{{ cluster.name == 'worker-2' }}\""))
    deployed = spec(("it", manifest))
    assert beyond(rules.check_safety(deployed, at_level(BASELINE))) == []
    made = render.render(deployed, context(deployed))
    (finding,) = beyond(rules.check_safety(made, at_level(BASELINE), rendered=True))
    assert finding.loc[-1] == "hostNetwork"


def test_the_objects_of_a_rendered_chart_keep_to_it_too() -> None:
    (finding,) = beyond(rules.check_chart_objects((deployment(pod("hostIPC: true")),), ("spec",), at_level(BASELINE)))
    assert "hostIPC takes a namespace of the node" in finding.message


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("hostIPC: true", "processes of one pod share memory in an emptyDir of medium Memory at /dev/shm"),
        ("volumes: [{name: a, hostPath: {path: /dev/shm/}}]", "use emptyDir: {medium: Memory}"),
        ("volumes: [{name: a, hostPath: {path: /dev/infiniband}}]", "devices come by a device plugin"),
        ("containers: [{name: a, securityContext: {privileged: true}}]", "GPUs need no privileges"),
        ("hostNetwork: true", "an RDMA or second network comes by a NetworkAttachmentDefinition"),
    ],
)
def test_what_gpu_workloads_ask_for_is_told_with_the_way_out(text: str, way: str) -> None:
    (finding,) = beyond(rules.check_safety(spec(("it", deployment(pod(text)))), WORKSPACE))
    assert finding.hint.startswith(way)
    assert finding.hint.endswith(f"or set podSecurity: privileged in Workspace {WORKSPACE.name}")


def test_a_workspace_says_its_level_and_is_baseline_otherwise() -> None:
    assert load().workspaces["llm"].pod_security is BASELINE
    template = TEMPLATE.replace("spec: {containers:", "spec: {hostIPC: true, containers:")
    (error,) = errors(load({**FLEET, "templates/vllm.yaml": template}))
    assert "spec.manifestResources[0].manifest.spec.template.spec.hostIPC: hostIPC takes a namespace of the" in error
    free = {"templates/vllm.yaml": template, "workspaces/llm.yaml": workspace(more="podSecurity: privileged")}
    assert errors(load({**FLEET, **free})) == []
    (error,) = errors(load({**FLEET, "workspaces/llm.yaml": workspace(more="podSecurity: Baseline")}))
    assert error.startswith("workspaces/llm.yaml:9: spec.podSecurity: ")


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "host", "hostPath": {"path": "/"}}]',
        ' {"spec": {"hostPID": true}}',
        '{"containers": [{"securityContext": {"privileged": true}}]}',
        '{"a": ' * 9_000 + "1" + "}" * 9_000,
    ],
)
def test_json_in_an_annotation_of_an_injector_is_held_to_the_level(text: str) -> None:
    made = deployment({"containers": [{"name": "a", "image": "a"}]})
    made["spec"]["template"]["metadata"] = {"annotations": {"sidecar.istio.io/userVolume": text}}
    assert complaints(made, BASELINE) == ["spec.template.metadata.annotations.sidecar.istio.io/userVolume"]


def test_json_in_an_annotation_may_be_anything_else() -> None:
    made = deployment({"containers": [{"name": "a", "image": "a"}]})
    made["metadata"]["annotations"] = {"a": '[{"name": "rdma"}]', "b": "[not json", "c": "{}"}
    assert complaints(made, BASELINE) == []
