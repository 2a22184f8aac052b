"""The rules on pods and on workloads that no schema states: what Kubernetes refuses beyond types and words.

Read from Kubernetes' own code (https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/core/validation,
``ValidatePodSpec``; ``pkg/apis/apps/validation`` and ``pkg/apis/batch/validation`` for the rules of a kind), and tried
one by one on an API server (``tests/e2e/test_pod_rules_e2e.py``). OpenKruise runs the same validation on the pods of
each subset.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from reconciler.core.pods.label_syntax import is_label_key, is_label_value
from reconciler.core.pods.taints import toleration_faults
from reconciler.core.validation.rules import (
    DNS_LABEL,
    MAX_PORT,
    OBJECT_NAME,
    PORT_NAME,
    Place,
    Rule,
    RuleJudgement,
    Syntax,
    all_like,
    at_least,
    below,
    filled,
    like,
    one_of,
    port,
    unique,
    within,
    words,
)
from reconciler.model.workload import Json
from reconciler.text.digits import is_digits
from reconciler.text.findings import Finding, Loc, shortened

_CONTAINERS = ("initContainers", "containers")
_GRACE = 30
"""Seconds that a pod has to end, unless it says otherwise."""
_MOST_NAMESERVERS = 3
_SHORTEST_TOKEN = 600
"""Seconds that a token of a service account lasts at least."""
_MOST_MODE = 0o777
_CRON_FIELDS = 5
_LONGEST = 253
"""Characters of a name that are compared with a pattern; longer ones take no longer."""

_VARIABLE = Syntax(
    takes=lambda text: re.fullmatch(r"[ -<>-~]+", text) is not None,
    what="the name of a variable",
    hint="printable ASCII characters without '='",
)
_LABEL_KEY = Syntax(takes=is_label_key, what="the name of a label", hint="try one like topology.kubernetes.io/zone")
_LABEL_VALUE = Syntax(
    takes=is_label_value, what="the value of a label", hint="try letters, digits, '-', '_' and '.', at most 63"
)
_HEADER = Syntax(
    takes=lambda text: re.fullmatch(r"[-A-Za-z0-9]+", text) is not None,
    what="the name of a header",
    hint="letters, digits and dashes",
)
_SYSCTL_PART = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = Syntax(
    takes=lambda text: re.fullmatch(rf"{_SYSCTL_PART}([./]{_SYSCTL_PART})*", text[:_LONGEST]) is not None,
    what="the name of a sysctl",
    hint="try one like kernel.shm_rmid_forced",
)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


_ADDRESS = Syntax(takes=_is_address, what="an IP address", hint="try one like 10.0.0.10")
_FIELD = Syntax(
    takes=lambda text: (
        re.fullmatch(
            r"metadata\.(name|namespace|uid|labels|annotations)|metadata\.(labels|annotations)\['[^']+'\]"
            r"|spec\.(nodeName|serviceAccountName|host)|status\.(hostIP|hostIPs|podIP|podIPs)",
            text,
        )
        is not None
    ),
    what="the field of a pod here",
    hint="try metadata.name, spec.nodeName or status.podIP",
)
_RESOURCE = Syntax(
    takes=lambda text: (
        re.fullmatch(r"(requests|limits)\.(cpu|memory|ephemeral-storage|hugepages-\S+)", text) is not None
    ),
    what="a resource here",
    hint="try limits.cpu, limits.memory, requests.cpu or requests.memory",
)


def check_labels(labels: Json, loc: Loc, judgement: RuleJudgement) -> Iterator[Finding]:
    """Check the keys and values of labels, or of what selects by labels."""
    for key, value in labels.items() if isinstance(labels, Mapping) else ():
        if not judgement.is_open(key) and not is_label_key(key):
            message = f"{shortened(key)!r} cannot be {_LABEL_KEY.what}"
            yield Finding(loc=(*loc, key), message=message, hint=_LABEL_KEY.hint)
        elif isinstance(value, str) and not judgement.is_open(value) and not is_label_value(value):
            message = f"{shortened(value)!r} cannot be {_LABEL_VALUE.what}"
            yield Finding(loc=(*loc, key), message=message, hint=_LABEL_VALUE.hint)


def _labels(name: str) -> Rule:
    """Check labels, or what selects by labels."""

    def check(place: Place) -> Iterator[Finding]:
        yield from check_labels(place.value.get(name), (*place.loc, name), place.judgement)

    return check


def _selects(*, of_nodes: bool) -> Rule:
    """Require the values that an operator needs."""

    def check(place: Place) -> Iterator[Finding]:
        operator, values = place.text("operator"), place.value.get("values")
        number = len(values) if isinstance(values, list) else 0
        if isinstance(values, str) and place.is_open("values"):
            return
        if operator in ("In", "NotIn") and not number:
            yield place.finding(f"{operator} needs values", f"try {operator} with a list, or Exists", "values")
        elif operator in ("Exists", "DoesNotExist") and number:
            yield place.finding(f"{operator} has no values", "leave them out, or try In", "values")
        elif of_nodes and operator in ("Gt", "Lt") and number != 1:
            yield place.finding(f"{operator} needs one value", "try a list of one whole number", "values")

    return check


def _containers(place: Place) -> Iterator[Finding]:
    if place.value.get("containers") == [] and not place.judgement.partial:
        yield place.finding("a pod has at least one container", "keep one of them", "containers")
    if place.get("ephemeralContainers"):
        message = "only a pod that runs has ephemeral containers"
        yield place.finding(message, "leave them out, or try initContainers", "ephemeralContainers")
    seen = set[str]()
    for container in place.objects(*_CONTAINERS):
        name = container.text("name")
        if name in seen:
            yield container.finding(f"{name!r} is there twice", "give it another name", "name")
        elif name:
            seen.add(name)
    for container in place.objects("initContainers"):
        if container.states("restartPolicy"):
            continue
        for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.states(field):
                message = f"an init container that does not go on has no {field}"
                yield container.finding(message, "leave it out, or set restartPolicy: Always for a sidecar", field)


def _whole_pod(place: Place) -> Iterator[Finding]:
    if place.value.get("dnsPolicy") == "None" and not place.value.get("dnsConfig"):
        message = "dnsPolicy None needs the nameservers of a dnsConfig"
        yield place.finding(message, "try dnsConfig: {nameservers: [10.0.0.10]}", "dnsPolicy")
    if place.value.get("hostPID") is True and place.value.get("shareProcessNamespace") is True:
        message = "hostPID and shareProcessNamespace cannot both be true"
        yield place.finding(message, "leave one of them out", "shareProcessNamespace")
    system, security = place.object("os"), place.object("securityContext")
    if system is not None and system.text("name") == "windows" and security is not None:
        for field in ("fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsUser", "seLinuxOptions", "sysctls"):
            if security.states(field):
                yield security.finding(f"a pod on Windows has no {field}", "leave it out", field)


def _ports(place: Place) -> Iterator[Finding]:
    """Check ports of the nodes, which one container alone can have, and those of a pod on the network of its node."""
    is_host, of_pod = place.value.get("hostNetwork") is True, set[tuple[int, str, str]]()
    for container in place.objects(*_CONTAINERS):
        # API servers compare the ports of each init container with one another alone, be it a sidecar or not.
        seen = of_pod if container.loc[-2] == "containers" else set[tuple[int, str, str]]()
        for entry in container.objects("ports"):
            number, own = entry.number("hostPort"), entry.number("containerPort")
            if not number:
                continue
            if is_host and seen is of_pod and own is not None and number != own:
                message = f"on the network of the node, {number} would have to be the containerPort, {own}"
                yield entry.finding(message, "leave hostPort out", "hostPort")
            if entry.is_open("protocol", "hostIP"):
                continue
            key = (number, entry.text("protocol") or "TCP", entry.text("hostIP") or "")
            if key in seen:
                yield entry.finding(f"{number} is there twice", "give it another number", "hostPort")
            seen.add(key)


def _mounts(place: Place) -> Iterator[Finding]:
    volumes = {volume.text("name"): volume for volume in place.objects("volumes")}
    # A controller may add volumes, and so may an expression that is not rendered.
    claims = place.judgement.claims
    complete = not (place.judgement.partial or claims is None or None in volumes or place.is_open("volumes"))
    known = {*volumes, *(claims or ())}
    for container in place.objects(*_CONTAINERS):
        paths = Counter(mount.text("mountPath") for mount in container.objects("volumeMounts"))
        for mount in container.objects("volumeMounts"):
            path, name = mount.text("mountPath"), mount.text("name")
            if path is not None and paths[path] > 1:
                paths[path] = 0
                yield mount.finding(f"{shortened(path)!r} is mounted twice", "", "mountPath")
            if complete and name is not None and name not in known:
                yield mount.finding(f"there is no volume {shortened(name)!r}", "", "name")
            security = container.object("securityContext")
            privileged = security is not None and security.value.get("privileged") not in (None, False)
            is_told = privileged or container.is_open("securityContext")
            if mount.text("mountPropagation") == "Bidirectional" and not is_told:
                message = "only a privileged container propagates its mounts both ways"
                yield mount.finding(message, "try HostToContainer", "mountPropagation")
        for device in container.objects("volumeDevices"):
            volume = volumes.get(device.text("name"))
            if (
                volume is not None
                and device.text("name") not in (claims or ())
                and not (volume.states("persistentVolumeClaim") or volume.states("ephemeral"))
            ):
                yield device.finding("only the volume of a claim is a device", "mount it instead", "name")


def _resource_claims(place: Place) -> Iterator[Finding]:
    claims = {claim.text("name") for claim in place.objects("resourceClaims")}
    if place.judgement.partial or None in claims or place.is_open("resourceClaims"):
        return
    for container in place.objects(*_CONTAINERS):
        resources = container.object("resources")
        for claim in resources.objects("claims") if resources is not None else ():
            name = claim.text("name")
            if name is not None and name not in claims:
                yield claim.finding(f"there is no resourceClaim {shortened(name)!r}", "", "name")


def _hooks(place: Place) -> Iterator[Finding]:
    stated = place.value.get("terminationGracePeriodSeconds")
    grace = _GRACE if stated is None else place.number("terminationGracePeriodSeconds")
    for container in place.objects("containers"):
        lifecycle = container.object("lifecycle")
        hook = lifecycle.object("preStop") if lifecycle is not None else None
        sleep = hook.object("sleep") if hook is not None else None
        seconds = sleep.number("seconds") if sleep is not None else None
        if sleep is not None and grace is not None and seconds is not None and not 0 <= seconds <= max(grace, 1):
            message = f"{seconds} s are not within terminationGracePeriodSeconds, {grace}"
            yield sleep.finding(message, "sleep less, or raise that", "seconds")


def _constraints(place: Place) -> Iterator[Finding]:
    seen = set[tuple[str | None, str | None]]()
    for constraint in place.objects("topologySpreadConstraints"):
        key = constraint.text("topologyKey"), constraint.text("whenUnsatisfiable")
        if None not in key and key in seen:
            message = f"{shortened(str(key[0]))!r} with {key[1]} is there twice"
            yield constraint.finding(message, "keep one of them", "topologyKey")
        seen.add(key)


def _container(place: Place) -> Iterator[Finding]:
    for name in ("livenessProbe", "startupProbe"):
        probe = place.object(name)
        if probe is not None and probe.number("successThreshold") not in (None, 0, 1):
            message = f"a {name} succeeds at once, so that it is 1"
            yield probe.finding(message, "try 1", "successThreshold")
    readiness = place.object("readinessProbe")
    if readiness is not None and readiness.states("terminationGracePeriodSeconds"):
        message = "a readinessProbe ends no container, so that it has no such time"
        yield readiness.finding(message, "leave it out", "terminationGracePeriodSeconds")
    security = place.object("securityContext")
    privileged = security is not None and security.value.get("privileged") is True
    if security is not None and privileged and security.value.get("allowPrivilegeEscalation") is False:
        message = "a privileged container cannot be kept from more privileges"
        yield security.finding(message, "leave it out", "allowPrivilegeEscalation")
    for resize in place.objects("resizePolicy"):
        if resize.text("resourceName") not in (None, "cpu", "memory"):
            message = "only cpu and memory can be resized"
            yield resize.finding(message, "leave this policy out", "resourceName")


def _variable(place: Place) -> Iterator[Finding]:
    if place.get("valueFrom") is not None and place.get("value") not in (None, ""):
        yield place.finding("a variable has a value or valueFrom, not both", "leave one of them out")


def _command(place: Place) -> Iterator[Finding]:
    if not place.value.get("command") and not place.judgement.partial and not place.has_strangers():
        yield place.finding("command is required", "try one like [cat, /tmp/ready]")


def _toleration(place: Place) -> Iterator[Finding]:
    names = ("key", "operator", "value", "effect")
    # Another type, and a word that Kubernetes does not know, are told by the schema.
    texts = [place.text(name) for name in names if place.states(name)]
    words_known = all(
        not (text := place.text(name)) or text in place.schema.fields[name].words for name in ("operator", "effect")
    )
    if words_known and None not in texts:
        key, operator, value, effect = (place.text(name) or "" for name in names)
        seconds = place.number("tolerationSeconds")
        for field, message, hint in toleration_faults(
            key=key, operator=operator, value=value, effect=effect, seconds=seconds
        ):
            yield place.finding(message, hint, field)


def _node_terms(place: Place) -> Iterator[Finding]:
    if place.value.get("nodeSelectorTerms") == []:
        yield place.finding("at least one term is required", "", "nodeSelectorTerms")


def _required_values(place: Place) -> Iterator[Finding]:
    """Check the values of required labels: those of preferred ones are taken as they are, and fields are no labels."""
    for term in place.objects("nodeSelectorTerms"):
        for requirement in term.objects("matchExpressions"):
            yield from all_like(_LABEL_VALUE, "values")(requirement)


def _node_fields(place: Place) -> Iterator[Finding]:
    for requirement in place.objects("matchFields"):
        if requirement.text("key") not in (None, "metadata.name"):
            yield requirement.finding("only the name of a node is such a field", "try metadata.name", "key")


def _spread(place: Place) -> Iterator[Finding]:
    if place.states("minDomains") and place.value.get("whenUnsatisfiable") == "ScheduleAnyway":
        message = "a spread that is only preferred has no such number"
        yield place.finding(message, "set whenUnsatisfiable: DoNotSchedule, or leave it out", "minDomains")
    if place.value.get("matchLabelKeys") and not place.states("labelSelector"):
        yield place.finding("labels are compared only beside a labelSelector", "add one", "matchLabelKeys")


def _profile(place: Place) -> Iterator[Finding]:
    kind, name = place.text("type"), place.value.get("localhostProfile")
    if kind == "Localhost" and name is None:
        yield place.finding("a profile of the node is named by localhostProfile")
    elif kind in ("RuntimeDefault", "Unconfined") and name is not None:
        message = f"{kind} has no localhostProfile"
        yield place.finding(message, "leave it out, or set type: Localhost", "localhostProfile")


def _no_steps_up(place: Place) -> Iterator[Finding]:
    path = place.text("path")
    if path is not None and ".." in path.split("/"):
        yield place.finding(f"{shortened(path)!r} leads out of its directory", "try one without ..", "path")


def _absolute(name: str) -> Rule:
    """Require a path from the root of a file system."""

    def check(place: Place) -> Iterator[Finding]:
        path = place.text(name)
        if path and not path.startswith("/"):
            yield place.finding(f"{shortened(path)!r} is no absolute path", "begin it with /", name)

    return check


def _mount(place: Place) -> Iterator[Finding]:
    if place.value.get("subPath") and place.value.get("subPathExpr"):
        message = "subPath and subPathExpr exclude each other"
        yield place.finding(message, "leave one of them out", "subPathExpr")


def _claim(place: Place) -> Iterator[Finding]:
    if place.judgement.partial or place.has_strangers() or place.is_open("resources"):
        return
    if not place.value.get("accessModes"):
        yield place.finding("accessModes is required", "try [ReadWriteOnce]")
    resources = place.object("resources")
    requests = resources.value.get("requests") if resources is not None else None
    if resources is not None and resources.is_open("requests"):
        return
    if not isinstance(requests, Mapping) or requests.get("storage") is None:
        yield place.finding("the size is required", "add resources: {requests: {storage: 1Gi}}")


def _nameservers(place: Place) -> Iterator[Finding]:
    names = place.value.get("nameservers")
    if isinstance(names, list) and len(names) > _MOST_NAMESERVERS:
        yield place.finding(f"{len(names)} are more than {_MOST_NAMESERVERS}", "keep the first", "nameservers")


def _restart(*, ending: bool) -> Rule:
    """Require the restart policy of pods that end, or that run until they are deleted."""

    def check(place: Place) -> Iterator[Finding]:
        template = place.object("template")
        pod = template.object("spec") if template is not None else None
        if pod is None:
            return
        policy, loc = pod.get("restartPolicy"), pod.loc
        if ending and not pod.states("restartPolicy") and not place.judgement.partial:
            yield Finding(loc=loc, message="restartPolicy is required in pods that end", hint="try OnFailure or Never")
        # A word that Kubernetes does not know is told by the schema.
        elif policy in (("Always",) if ending else ("OnFailure", "Never")):
            what, hint = ("end", "try OnFailure or Never") if ending else ("run until they are deleted", "try Always")
            yield pod.finding(f"pods that {what} have no restartPolicy {policy}", hint, "restartPolicy")
        if not ending and pod.number("activeDeadlineSeconds") is not None:
            message = "pods that run until they are deleted have no deadline"
            yield pod.finding(message, "leave it out", "activeDeadlineSeconds")

    return check


def _selector(place: Place) -> Iterator[Finding]:
    """Check that a workload selects its own pods."""
    selector, template = place.object("selector"), place.object("template")
    if selector is None or place.judgement.partial or selector.has_strangers():
        return
    if not selector.value.get("matchLabels") and not selector.value.get("matchExpressions"):
        yield place.finding("an empty selector would take all pods of the namespace", "name a label", "selector")
    metadata = template.object("metadata") if template is not None else None
    if (template is not None and template.is_open("metadata")) or (metadata is not None and metadata.is_open("labels")):
        return
    wanted, labels = selector.object("matchLabels"), metadata.object("labels") if metadata is not None else None
    for key in wanted.value if wanted is not None else ():
        value, has = (
            wanted.get(key) if wanted is not None else None,
            labels.value.get(key, "") or "" if labels and key in labels.value else None,
        )
        is_known = isinstance(value, str) and not place.judgement.is_open(key) and not place.judgement.is_open(has)
        if template is not None and is_known and is_label_value(str(value)) and value != has:
            message = f"the pods do not have {shortened(key)}: {shortened(str(value))}"
            hint = "give the template the labels of the selector"
            yield selector.finding(message, hint, "matchLabels", key)


def _strategy(place: Place) -> Iterator[Finding]:
    rolling = place.object("rollingUpdate")
    if place.text("type") == "Recreate" and rolling is not None:
        yield place.finding("Recreate does not roll", "leave it out, or set type: RollingUpdate", "rollingUpdate")
    if rolling is None:
        return
    values = {name: rolling.get(name) for name in ("maxSurge", "maxUnavailable")}
    for name, value in values.items():
        if isinstance(value, str) and not (value.endswith("%") and is_digits(value[:-1])):
            message = f"{shortened(value)!r} is neither a number nor a percentage"
            yield rolling.finding(message, "try 1 or 25%", name)
    if all(value in (0, "0%") for value in values.values()):
        yield rolling.finding("maxSurge and maxUnavailable cannot both be 0", "set one of them to 1")


def _deadline(place: Place) -> Iterator[Finding]:
    ready, deadline = place.number("minReadySeconds") or 0, place.number("progressDeadlineSeconds")
    if deadline is not None and deadline <= ready:
        message = f"{deadline} is not more than minReadySeconds, {ready}"
        yield place.finding(message, "raise it", "progressDeadlineSeconds")


def _job(place: Place) -> Iterator[Finding]:
    is_manual = place.value.get("manualSelector") is True or place.is_open("manualSelector")
    selector = place.object("selector")
    is_empty = selector is not None and not any(selector.value.values())
    if place.states("selector") and not is_manual and not is_empty:
        message = "Kubernetes makes the selector of a Job"
        yield place.finding(message, "leave it out, or set manualSelector: true", "selector")
    if place.text("completionMode") == "Indexed" and not place.states("completions"):
        yield place.finding("an Indexed Job needs the number of its completions", "add completions", "completionMode")
    template, failures = place.object("template"), place.states("podFailurePolicy")
    pod = template.object("spec") if template is not None else None
    if failures and pod is not None and pod.text("restartPolicy") == "OnFailure":
        message = "a podFailurePolicy sees no failure of pods that restart"
        yield place.finding(message, "set restartPolicy: Never", "podFailurePolicy")


def _cron(place: Place) -> Iterator[Finding]:
    schedule = place.text("schedule")
    if (
        schedule is not None
        and not schedule.startswith(("@", "TZ=", "CRON_TZ="))
        and len(schedule.split()) != _CRON_FIELDS
    ):
        message = f"{shortened(schedule)!r} is no schedule"
        yield place.finding(message, "minute, hour, day, month and weekday: '0 3 * * *'", "schedule")


_FILE = (below("path"), within(0, _MOST_MODE, "mode", "mode of a file (0 to 0777 in octal)"), filled("path"))
_FILES = (within(0, _MOST_MODE, "defaultMode", "mode of a file (0 to 0777 in octal)"),)
_TERMS = (_labels("matchLabels"),)
selects_its_pods: Rule = _selector
"""The rule of a selector beside a pod template."""
runs_until_deleted: Rule = _restart(ending=False)
"""The rule of a pod template whose pods run until they are deleted."""
ends_by_itself: Rule = _restart(ending=True)
"""The rule of a pod template whose pods end."""
_SCALE = (at_least(0, "replicas", "minReadySeconds", "revisionHistoryLimit"), selects_its_pods, runs_until_deleted)

RULES: Mapping[str, Sequence[Rule]] = {
    "core.v1.PodSpec": (
        _containers,
        unique("name", "volumes"),
        unique("name", "resourceClaims"),
        unique("name", "schedulingGates"),
        _whole_pod,
        _ports,
        _mounts,
        _resource_claims,
        _hooks,
        _constraints,
        _labels("nodeSelector"),
        at_least(1, "activeDeadlineSeconds"),
        like(DNS_LABEL, "hostname", "subdomain"),
        like(OBJECT_NAME, "serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"),
    ),
    "core.v1.Container": (
        filled("image"),
        like(DNS_LABEL, "name"),
        filled("name"),
        unique("name", "ports"),
        unique("resourceName", "resizePolicy"),
        _container,
    ),
    "core.v1.ContainerPort": (
        within(1, MAX_PORT, "containerPort", "port"),
        within(0, MAX_PORT, "hostPort", "port"),
        like(PORT_NAME, "name"),
    ),
    "core.v1.EnvVar": (filled("name"), like(_VARIABLE, "name"), _variable),
    "core.v1.EnvVarSource": (one_of(required=True),),
    "core.v1.EnvFromSource": (one_of(required=True),),
    "core.v1.ConfigMapEnvSource": (filled("name"),),
    "core.v1.SecretEnvSource": (filled("name"),),
    "core.v1.ConfigMapKeySelector": (filled("name", "key"),),
    "core.v1.SecretKeySelector": (filled("name", "key"),),
    "core.v1.ObjectFieldSelector": (like(_FIELD, "fieldPath"),),
    "core.v1.ResourceFieldSelector": (like(_RESOURCE, "resource"),),
    "core.v1.Probe": (
        one_of(required=True),
        at_least(0, "periodSeconds", "initialDelaySeconds", "timeoutSeconds", "failureThreshold"),
        at_least(1, "terminationGracePeriodSeconds"),
    ),
    "core.v1.LifecycleHandler": (one_of(required=True),),
    "core.v1.ExecAction": (_command,),
    "core.v1.TCPSocketAction": (port("port"),),
    "core.v1.HTTPGetAction": (port("port"),),
    "core.v1.GRPCAction": (within(1, MAX_PORT, "port", "port"),),
    "core.v1.HTTPHeader": (like(_HEADER, "name"),),
    "core.v1.Volume": (filled("name"), like(DNS_LABEL, "name"), one_of(required=False)),
    "core.v1.PersistentVolumeClaimVolumeSource": (filled("claimName"),),
    "core.v1.ConfigMapVolumeSource": (filled("name"), *_FILES),
    "core.v1.SecretVolumeSource": (filled("secretName"), *_FILES),
    "core.v1.ProjectedVolumeSource": _FILES,
    "core.v1.DownwardAPIVolumeSource": _FILES,
    "core.v1.VolumeProjection": (one_of(required=False),),
    "core.v1.ServiceAccountTokenProjection": (
        at_least(_SHORTEST_TOKEN, "expirationSeconds"),
        filled("path"),
        below("path"),
    ),
    "core.v1.KeyToPath": _FILE,
    "core.v1.DownwardAPIVolumeFile": (*_FILE, one_of(required=True)),
    "core.v1.HostPathVolumeSource": (
        filled("path"),
        _no_steps_up,
        words(
            "type",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ),
    ),
    "core.v1.NFSVolumeSource": (filled("server", "path"), _absolute("path")),
    "core.v1.CSIVolumeSource": (filled("driver"),),
    "core.v1.PersistentVolumeClaimSpec": (_claim,),
    "core.v1.VolumeMount": (filled("mountPath", "name"), below("subPath", "subPathExpr"), _mount),
    "core.v1.Toleration": (_toleration,),
    "core.v1.NodeSelector": (_node_terms, _required_values),
    "core.v1.NodeSelectorTerm": (_node_fields,),
    "core.v1.NodeSelectorRequirement": (
        _selects(of_nodes=True),
        like(_LABEL_KEY, "key"),
    ),
    "core.v1.PreferredSchedulingTerm": (within(1, 100, "weight", "weight"),),
    "core.v1.WeightedPodAffinityTerm": (within(1, 100, "weight", "weight"),),
    "core.v1.PodAffinityTerm": (
        filled("topologyKey"),
        like(_LABEL_KEY, "topologyKey"),
        all_like(DNS_LABEL, "namespaces"),
    ),
    "core.v1.TopologySpreadConstraint": (at_least(1, "maxSkew", "minDomains"), filled("topologyKey"), _spread),
    "core.v1.PodDNSConfig": (all_like(_ADDRESS, "nameservers"), _nameservers),
    "core.v1.PodDNSConfigOption": (filled("name"),),
    "core.v1.HostAlias": (like(_ADDRESS, "ip"), all_like(OBJECT_NAME, "hostnames")),
    "core.v1.PodReadinessGate": (like(_LABEL_KEY, "conditionType"),),
    "core.v1.PodOS": (words("name", "linux", "windows"),),
    "core.v1.PodResourceClaim": (
        like(DNS_LABEL, "name"),
        one_of(required=True, names=("resourceClaimName", "resourceClaimTemplateName")),
    ),
    "core.v1.PodSecurityContext": (
        at_least(0, "runAsUser", "runAsGroup", "fsGroup"),
        unique("name", "sysctls"),
    ),
    "core.v1.SecurityContext": (
        at_least(0, "runAsUser", "runAsGroup"),
        words("procMount", "Default", "Unmasked"),
    ),
    "core.v1.Sysctl": (like(_SYSCTL, "name"),),
    "core.v1.SeccompProfile": (_profile,),
    "core.v1.AppArmorProfile": (_profile,),
    "meta.v1.ObjectMeta": (_labels("labels"),),
    "meta.v1.LabelSelector": _TERMS,
    "meta.v1.LabelSelectorRequirement": (
        _selects(of_nodes=False),
        like(_LABEL_KEY, "key"),
        all_like(_LABEL_VALUE, "values"),
    ),
    "apps.v1.DeploymentSpec": (*_SCALE, _deadline),
    "apps.v1.DeploymentStrategy": (_strategy,),
    "apps.v1.ReplicaSetSpec": _SCALE,
    "apps.v1.StatefulSetSpec": _SCALE,
    "apps.v1.DaemonSetSpec": _SCALE,
    "core.v1.ReplicationControllerSpec": (at_least(0, "replicas", "minReadySeconds"), runs_until_deleted),
    "batch.v1.JobSpec": (
        at_least(
            0,
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
            "ttlSecondsAfterFinished",
        ),
        ends_by_itself,
        _job,
    ),
    "batch.v1.CronJobSpec": (
        at_least(0, "startingDeadlineSeconds", "failedJobsHistoryLimit", "successfulJobsHistoryLimit"),
        _cron,
    ),
}
"""The rules of definitions by their names."""
