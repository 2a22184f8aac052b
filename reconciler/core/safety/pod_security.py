"""Kubernetes' Pod Security Standards over whatever an object says of pods, by the level of its workspace.

The controls are those of https://kubernetes.io/docs/concepts/security/pod-security-standards/ for Kubernetes 1.35, each
under its name there. Those of ``baseline`` forbid values, and are looked for wherever they stand in a namespaced
object: in every pod template, container list and patch of every kind. Those of ``restricted`` ask for values as well,
and are judged where a pod spec stands. What an expression decides is judged once it is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.core.pods.pod_references import as_list, as_mapping
from reconciler.core.safety.json_texts import json_inside
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds
from reconciler.core.workloads.pods import pod_template_sites
from reconciler.model.policy import PodSecurity, Workspace
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.json_input import JsonTooDeep, JsonTooLarge

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_HOST_NAMESPACES = {
    "hostIPC": "processes of one pod share memory in an emptyDir of medium Memory at /dev/shm",
    "hostNetwork": "an RDMA or second network comes by a NetworkAttachmentDefinition of the cluster",
    "hostPID": "shareProcessNamespace: true shares processes within the pod",
}
_CAPABILITIES = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip # a list of words, filled line by line
_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_SYSCTLS = frozenset({
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
})  # fmt: skip # a list of words, filled line by line
_CONFINED = frozenset({"RuntimeDefault", "Localhost"})
_VOLUMES = frozenset({
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
})  # fmt: skip # a list of words, filled line by line
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP = ("seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe", "postStart", "preStop")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Violation:
    """A value that a level does not allow."""

    loc: Loc
    what: str
    remedy: str = ""
    level: PodSecurity = PodSecurity.BASELINE
    """The lowest level that does not allow it."""


def check_pod_security(
    manifest: Mapping[str, Json],
    loc: Loc,
    workspace: Workspace,
    kinds: Kinds = NO_KINDS,
    later: Callable[[Json], bool] = lambda _: False,
) -> Iterator[Finding]:
    """Check an object against the level of its workspace.

    `kinds` are the WorkloadKinds of the fleet, `later` tells of a value whether an expression is going to decide it.
    """
    level = workspace.pod_security
    if level is PodSecurity.PRIVILEGED:
        return
    violations = [*_service(manifest), *_anywhere(manifest, ())]
    if level is PodSecurity.RESTRICTED:
        named = {place.loc: place.template.containers for place in pod_template_sites(manifest, kinds) if place.loc}
        violations += _pods(manifest, (), named)
    for violation in violations:
        if later(_value(manifest, violation.loc)):
            continue
        weaker = PodSecurity.PRIVILEGED if violation.level is PodSecurity.BASELINE else PodSecurity.BASELINE
        weaker_level = f"set podSecurity: {weaker} in Workspace {workspace.name}"
        yield Finding(
            loc=(*loc, *violation.loc),
            message=f"{violation.what}, which podSecurity {level} does not allow",
            hint=f"{violation.remedy}, or {weaker_level}" if violation.remedy else f"leave it out, or {weaker_level}",
        )


def _service(manifest: Mapping[str, Json]) -> Iterator[_Violation]:
    """Find external IPs of a Service, by which it takes the traffic of other tenants (CVE-2020-8554)."""
    spec = manifest.get("spec")
    if group_kind(manifest) == "/Service" and isinstance(spec, dict) and spec.get("externalIPs"):
        remedy = "try type: LoadBalancer, or an Ingress"
        yield _Violation(loc=("spec", "externalIPs"), what="external IPs take traffic of others", remedy=remedy)


def _anywhere(value: Json, loc: Loc) -> Iterator[_Violation]:
    """Find what baseline forbids in a value and all below it."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _anywhere(item, (*loc, index))
    elif isinstance(value, dict):
        yield from _in_mapping(value, loc)
        for name, child in value.items():
            if isinstance(child, dict | list):
                yield from _anywhere(child, (*loc, name))


def _in_mapping(value: Mapping[str, Json], loc: Loc) -> Iterator[_Violation]:
    """Find what baseline forbids in the fields of one mapping."""
    for name, remedy in _HOST_NAMESPACES.items():  # Host Namespaces
        if value.get(name):
            yield _Violation(loc=(*loc, name), what=f"{name} takes a namespace of the node", remedy=remedy)
    for name, child in value.items():
        where = (*loc, name)
        if name == "hostPath" and isinstance(child, dict):  # HostPath Volumes
            yield _host_path(child, where)
        elif name == "hostPort" and child:  # Host Ports
            yield _Violation(loc=where, what="a hostPort is a port of the node", remedy="reach the pods by a Service")
        elif name in ("securityContext", "podSecurityContext") and isinstance(child, dict):
            yield from _security_context(child, where)
        elif name in _PROBES and isinstance(child, dict):  # Host Probes / Lifecycle Hooks
            yield from _probe(child, where)
        elif name == "annotations" and isinstance(child, dict):
            yield from _annotations(child, where)
            yield from _injected_violations(child, where)


def _host_path(volume: Mapping[str, Json], loc: Loc) -> _Violation:
    path = str(volume.get("path", ""))
    if path.rstrip("/") == "/dev/shm":  # noqa: S108 -- the path of a volume, not one of ours
        remedy = "use emptyDir: {medium: Memory}"
    elif path.startswith("/dev"):
        remedy = "devices come by a device plugin or a ResourceClaim"
    else:
        remedy = "use a PersistentVolumeClaim or an emptyDir"
    return _Violation(loc=loc, what=f"hostPath {shortened(path)!r} is a directory of the node", remedy=remedy)


def _security_context(context: Mapping[str, Json], loc: Loc) -> Iterator[_Violation]:
    """Find what baseline forbids in the security context of a pod or of a container."""
    if context.get("privileged"):  # Privileged Containers
        remedy = "GPUs need no privileges: they come by resources.limits"
        yield _Violation(loc=(*loc, "privileged"), what="a privileged container has the node", remedy=remedy)
    capabilities = context.get("capabilities")
    added = capabilities.get("add") if isinstance(capabilities, dict) else None
    for index, name in enumerate(as_list(added)):  # Capabilities
        if name not in _CAPABILITIES:
            where = (*loc, "capabilities", "add", index)
            yield _Violation(loc=where, what=f"capability {shortened(str(name))} is beyond a container's own")
    for name in ("appArmorProfile", "seccompProfile"):  # AppArmor, Seccomp
        profile = context.get(name)
        kind = profile.get("type") if isinstance(profile, dict) else None
        if kind is not None and kind not in _CONFINED:
            what = f"{name} {shortened(str(kind))} confines nothing"
            yield _Violation(loc=(*loc, name, "type"), what=what, remedy="try RuntimeDefault")
    yield from _selinux(context.get("seLinuxOptions"), (*loc, "seLinuxOptions"))
    if context.get("procMount") not in (None, "", "Default"):  # /proc Mount Type
        what = f"procMount {shortened(str(context['procMount']))} uncovers /proc"
        yield _Violation(loc=(*loc, "procMount"), what=what, remedy="try Default")
    windows = context.get("windowsOptions")
    if isinstance(windows, dict) and windows.get("hostProcess"):  # HostProcess
        where = (*loc, "windowsOptions", "hostProcess")
        yield _Violation(loc=where, what="a host process has the node")
    for index, sysctl in enumerate(as_list(context.get("sysctls"))):  # Sysctls
        name = sysctl.get("name") if isinstance(sysctl, dict) else sysctl
        if name not in _SYSCTLS:
            what = f"sysctl {shortened(str(name))} may be of the whole node"
            yield _Violation(loc=(*loc, "sysctls", index, "name"), what=what)


def _selinux(options: Json, loc: Loc) -> Iterator[_Violation]:
    """Find what the control SELinux forbids."""
    if not isinstance(options, dict):
        return
    if options.get("type") is not None and options["type"] not in _SELINUX_TYPES:
        yield _Violation(loc=(*loc, "type"), what=f"SELinux type {shortened(str(options['type']))} is no container's")
    for name in ("user", "role"):
        if options.get(name):
            yield _Violation(loc=(*loc, name), what=f"an SELinux {name} is set")


def _probe(probe: Mapping[str, Json], loc: Loc) -> Iterator[_Violation]:
    for name in ("httpGet", "tcpSocket"):
        action = probe.get(name)
        if isinstance(action, dict) and action.get("host"):
            what = "a probe or hook of another host is sent by the node"
            yield _Violation(loc=(*loc, name, "host"), what=what, remedy="leave the host out: it is the pod's own")


def _annotations(annotations: Mapping[str, Json], loc: Loc) -> Iterator[_Violation]:
    """Find older forms of the controls AppArmor and Seccomp."""
    for key, profile in annotations.items():
        text = str(profile)
        confined = text in ("", "runtime/default", "docker/default") or text.startswith("localhost/")
        if key.startswith((_APPARMOR, *_SECCOMP)) and not confined:
            what = f"the profile {shortened(text)} confines nothing"
            yield _Violation(loc=(*loc, key), what=what, remedy="try runtime/default")


def _injected_violations(annotations: Mapping[str, Json], loc: Loc) -> Iterator[_Violation]:
    """Find the same in annotations of JSON, which injectors of sidecars make volumes and containers of."""
    for key, text in annotations.items():
        try:
            violations = [*_anywhere(json_inside(text) if isinstance(text, str) else None, ())]
        except (JsonTooLarge, JsonTooDeep) as error:
            violations = [_Violation(loc=(), what=f"this JSON {error}, too much to be checked")]
        yield from (replace(violation, loc=(*loc, key)) for violation in violations)


def _pods(value: Json, loc: Loc, named: Mapping[Loc, Collection[str]]) -> Iterator[_Violation]:
    """Find what restricted misses or forbids in each pod spec of a value; `named` are those of its kind.

    A named pod spec may have fields that are a container each.
    """
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _pods(item, (*loc, index), named)
    if not isinstance(value, dict):
        return
    listed = isinstance(value.get("containers"), list) and all(
        isinstance(container, dict) for container in value["containers"]
    )
    if loc in named or listed:
        yield from _pod(value, loc, named.get(loc, ()))
    for name, child in value.items():
        yield from _pods(child, (*loc, name), named)


def _pod(pod: Mapping[str, Json], loc: Loc, named: Collection[str]) -> Iterator[_Violation]:
    """Find what restricted misses or forbids in one pod spec."""
    strict = PodSecurity.RESTRICTED
    for index, volume in enumerate(as_list(pod.get("volumes"))):  # Volume Types
        for name in volume if isinstance(volume, dict) else ():
            if name not in _VOLUMES and name not in ("name", "hostPath"):
                where = (*loc, "volumes", index, name)
                remedy = "use a PersistentVolumeClaim"
                yield _Violation(loc=where, what=f"a volume is of type {name}", remedy=remedy, level=strict)
    context = as_mapping(pod.get("securityContext"))
    linux = as_mapping(pod.get("os")).get("name") != "windows"
    containers: list[tuple[Loc, Mapping[str, Json]]] = [
        ((*loc, part, index), container)
        for part in _CONTAINERS
        for index, container in enumerate(as_list(pod.get(part)))
        if isinstance(container, dict)
    ]
    containers += [((*loc, name), pod[name]) for name in named if isinstance(pod.get(name), dict)]
    yield from _user(context, (*loc, "securityContext"))
    for where, container in containers:
        own = as_mapping(container.get("securityContext"))
        at = (*where, "securityContext")
        yield from _user(own, at)
        if own.get("runAsNonRoot", context.get("runAsNonRoot")) is not True:  # Running as Non-root
            what, remedy = "a container may run as root", "set runAsNonRoot: true"
            yield _Violation(loc=(*at, "runAsNonRoot"), what=what, remedy=remedy, level=strict)
        if not linux:
            continue
        if own.get("allowPrivilegeEscalation") is not False:  # Privilege Escalation
            what, remedy = "a container may gain privileges", "set allowPrivilegeEscalation: false"
            yield _Violation(loc=(*at, "allowPrivilegeEscalation"), what=what, remedy=remedy, level=strict)
        profile = own.get("seccompProfile", context.get("seccompProfile"))
        if as_mapping(profile).get("type") is None:  # Seccomp
            what, remedy = "a container has no seccomp profile", "set seccompProfile: {type: RuntimeDefault}"
            yield _Violation(loc=(*at, "seccompProfile"), what=what, remedy=remedy, level=strict)
        yield from _capabilities(as_mapping(own.get("capabilities")), (*at, "capabilities"))


def _user(context: Mapping[str, Json], loc: Loc) -> Iterator[_Violation]:
    """Find the user root (control Running as Non-root user)."""
    if context.get("runAsUser") in (0, "0") and context.get("runAsUser") is not False:
        what, remedy = "user 0 is root", "try another user"
        yield _Violation(loc=(*loc, "runAsUser"), what=what, remedy=remedy, level=PodSecurity.RESTRICTED)


def _capabilities(capabilities: Mapping[str, Json], loc: Loc) -> Iterator[_Violation]:
    """Find capabilities that are not dropped, and those added that baseline allows."""
    strict = PodSecurity.RESTRICTED
    if "ALL" not in as_list(capabilities.get("drop")):
        what, remedy = "capabilities are kept", "set capabilities: {drop: [ALL]}"
        yield _Violation(loc=(*loc, "drop"), what=what, remedy=remedy, level=strict)
    for index, name in enumerate(as_list(capabilities.get("add"))):
        if name != "NET_BIND_SERVICE" and name in _CAPABILITIES:
            yield _Violation(loc=(*loc, "add", index), what=f"capability {name} is added", level=strict)


def _value(manifest: Json, loc: Loc) -> Json:
    """Return what stands at a location, or the nearest value above it that is no mapping."""
    value = manifest
    for part in loc:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            break
    return value
