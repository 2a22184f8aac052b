"""A template's ``cmdExec`` as an object, a Job, nothing, or a refusal. Nothing is ever executed here.

EGS runs each entry as a kubectl command line. Here a closed list of commands is turned into the objects they would make
(docs/reference/egs.md, R13); any other becomes a Job in the destination cluster where the workspace allows command
Jobs, and is refused where it does not (docs/background/upstream/argocd.md, "Commands as Jobs"). A command line is split
as a shell would split it, but there is no shell: shell syntax is refused.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from reconciler.core.workloads.builtin_kinds import COMMANDED
from reconciler.model.ids import PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.policy import CommandJobs
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

_SHELL = frozenset("|&;<>()$`\n")
"""Shell syntax outside of quotes; a dollar sign and a backquote are syntax inside double quotes too."""

_OTHER_CLUSTER = frozenset({"context", "kubeconfig", "cluster", "server", "s", "token", "user", "username", "password"})
"""Flags by which kubectl reaches a cluster other than its own."""

_CLUSTER_WIDE = frozenset({"A", "all-namespaces", "raw"})
_SHELLS = frozenset({"ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "sh", "tcsh", "zsh"})

_CREATED = 3
"""Words of ``create configmap NAME``."""

_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

PATCHABLE_KINDS: dict[str, tuple[str, str]] = {
    alias: (version, kind)
    for version, kind, aliases in (
        ("v1", "ConfigMap", "configmap configmaps cm"),
        ("v1", "PersistentVolumeClaim", "persistentvolumeclaim persistentvolumeclaims pvc"),
        ("v1", "Service", "service services svc"),
        ("v1", "ServiceAccount", "serviceaccount serviceaccounts sa"),
        *(
            (
                f"{kind.group}/{kind.versions[0]}",
                kind.kind,
                "{0} {0}s {1} {0}.{2}".format(kind.kind.lower(), kind.short_name, kind.group),
            )
            for kind in COMMANDED
        ),
        ("networking.k8s.io/v1", "Ingress", "ingress ingresses ing ingress.networking.k8s.io"),
    )
    for alias in aliases.split()
}
"""Kinds that can be labelled and annotated as an object; all are namespaced and outlive a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCommand:
    """A command that is refused."""

    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOnlyCommand:
    """A command that changes nothing: ``kubectl get`` or a dry run."""

    argv: tuple[str, ...] = ()
    """Empty where a Job makes no sense either."""
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCommand:
    """A command that is equivalent to an object."""

    manifest: Json = field(hash=False)
    partial: bool = False
    """Whether it patches labels or annotations of an object that it does not make."""

    @property
    def kept(self) -> bool:
        """Whether the object outlives the placement: others may use it, or the placement did not make it."""
        return self.partial or self.manifest["kind"] == "Namespace"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCommand:
    """A command that only a Job can run."""

    argv: tuple[str, ...]
    namespace: str = ""
    """The namespace that it names; empty for none."""


CheckedCommand: TypeAlias = RefusedCommand | ReadOnlyCommand | ObjectCommand | JobCommand


@lru_cache(maxsize=1024)
def read_command(cmd: str) -> CheckedCommand:
    """Classify one command line, whatever the workspace allows. Messages never quote values."""
    words = _split(cmd)
    if isinstance(words, RefusedCommand):
        return words
    if words[0] != "kubectl":
        return RefusedCommand(message="the command is not kubectl", hint="commands are lines of kubectl")
    line = _Line(words[1:])
    if elsewhere := sorted(_OTHER_CLUSTER & line.flags.keys()):
        return RefusedCommand(
            message=f"the flag {elsewhere[0]!r} points kubectl at another cluster", hint="leave it out"
        )
    verb = line.positional[0] if line.positional else ""
    beyond = _refuse_flags(words, line)
    if verb == "get":
        return ReadOnlyCommand(argv=() if beyond else words, namespace=line.namespace)
    if line.flags.get("dry-run") in ("client", "server", "true", ""):
        return ReadOnlyCommand(namespace=line.namespace)
    made: CheckedCommand | None = None
    if verb == "create" and len(line.positional) > 1:
        made = {"namespace": _namespace, "ns": _namespace, "configmap": _config_map, "cm": _config_map}.get(
            line.positional[1], lambda _: None
        )(line)
    elif verb in ("label", "annotate"):
        made = _patch(line, verb)
    return made or beyond or JobCommand(argv=words, namespace=line.namespace)


def _refuse_flags(words: tuple[str, ...], line: _Line) -> RefusedCommand | None:
    """Refuse a command that could do something in a Job that its flags do not show."""
    if shell := next((word for word in words if word.rpartition("/")[2] in _SHELLS), None):
        return RefusedCommand(
            message=f"{shell!r} starts a shell, and commands run without one", hint="make it several steps"
        )
    if line.joined:
        return RefusedCommand(
            message=f"the word that begins with {line.joined!r} may be several flags",
            hint="write each flag as a word of its own",
        )
    if flag := next((flag for flag in line.flags if flag in _CLUSTER_WIDE), None):
        return RefusedCommand(message=f"the flag {flag!r} reaches beyond one namespace", hint="name one with -n")
    if flag := next((flag for flag in line.flags if flag == "as" or flag.startswith("as-")), None):
        return RefusedCommand(message=f"the flag {flag!r} makes kubectl act as another user", hint="leave it out")
    return None


def _split(cmd: str) -> tuple[str, ...] | RefusedCommand:
    """Split as a shell does; refuse shell syntax."""
    quote = ""
    skip = False
    for char in cmd.strip():
        if skip:
            skip = False
        elif char == "\\" and quote != "'":
            skip = True
        elif quote:
            if char == quote:
                quote = ""
            elif quote == '"' and char in "$`":
                return RefusedCommand(
                    message=f"{char!r} needs a shell, and commands run without one", hint="use single quotes"
                )
        elif char in "'\"":
            quote = char
        elif char in _SHELL:
            name = "a line break" if char == "\n" else repr(char)
            return RefusedCommand(
                message=f"{name} needs a shell, and commands run without one", hint="make it several steps"
            )
    try:
        words = tuple(shlex.split(cmd))
    except ValueError as error:
        return RefusedCommand(message=f"the command line is broken: {str(error).lower()}")
    return words if words and words[0] else RefusedCommand(message="the command line is empty")


_VALUED = frozenset({"namespace", "from-literal", "output", "field-manager", *_OTHER_CLUSTER})
"""Flags whose value may be the next word."""

_SHORT = {"n": "namespace", "o": "output"}

_ATTACHED = frozenset("lno")
"""One-letter flags that always take a value; text right after such a flag is its value."""


class _Line:
    """The words after ``kubectl``: flags by name, everything else in order."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.positional: list[str] = []
        self.flags: dict[str, str] = {}
        self.literals: list[str] = []
        self.joined = ""  # the beginning of a word such as -wn: one flag and its value, or two flags
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word == "--":  # only arguments from here on
                self.positional += rest
                break
            if not word.startswith("-") or word == "-":
                self.positional.append(word)
                continue
            name, equals, value = word.lstrip("-").partition("=")
            if not word.startswith("--"):
                if word[1].isalpha() and word[1] not in _ATTACHED and word[2:3] not in ("", "="):
                    self.joined = word[:2]
                name, equals, value = _SHORT.get(word[1], word[1]), word[2:3], word[2:].removeprefix("=")
            if not equals and name in _VALUED and rest:
                value = rest.pop(0)
            if name == "from-literal":
                self.literals.append(value)
            else:
                self.flags[name] = value

    @property
    def namespace(self) -> str:
        return self.flags.get("namespace", "")

    def other_flags(self, *expressible: str) -> set[str]:
        """Return the flags that change the effect of the command in a way that an object cannot express."""
        return set(self.flags) - {
            "namespace",
            "output",
            "save-config",
            "validate",
            "field-manager",
            "dry-run",
            *expressible,
        }


def _namespace(line: _Line) -> CheckedCommand | None:
    if len(line.positional) != _CREATED or line.other_flags() or line.literals:
        return None
    return ObjectCommand(manifest={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": line.positional[2]}})


def _config_map(line: _Line) -> CheckedCommand | None:
    if len(line.positional) != _CREATED or line.other_flags() or not line.literals:
        return None
    data: dict[str, str] = {}
    for literal in line.literals:
        key, equals, value = literal.partition("=")
        if not equals or not key or key in data:
            return RefusedCommand(message="each --from-literal needs a key of its own and a value", hint="key=value")
        data[key] = value
    metadata = {"name": line.positional[2]} | ({"namespace": line.namespace} if line.namespace else {})
    return ObjectCommand(manifest={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def _patch(line: _Line, verb: str) -> CheckedCommand | None:
    """Convert ``kubectl label`` and ``annotate`` of a namespaced object into an object with only that in it."""
    kind, slash, name = line.positional[1].partition("/") if len(line.positional) > 1 else ("", "", "")
    pairs = line.positional[2:]
    if not slash and pairs:
        name, *pairs = pairs
    if kind.lower() not in PATCHABLE_KINDS or not name or not pairs or line.other_flags("overwrite") or line.literals:
        return None
    marks: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:  # `key-` takes a label away, which no object can say
            return None
        if _LABEL_KEY.fullmatch(key) is None:
            return RefusedCommand(message=f"{shortened(key)!r} cannot be the key of a label or annotation")
        marks[key] = value
    version, title = PATCHABLE_KINDS[kind.lower()]
    metadata: dict[str, Json] = {"name": name} | ({"namespace": line.namespace} if line.namespace else {})
    metadata["labels" if verb == "label" else "annotations"] = marks
    return ObjectCommand(manifest={"apiVersion": version, "kind": title, "metadata": metadata}, partial=True)


JOB_NAMESPACE = "kubeslice-system"
"""Namespace of the commands' service account and of their Jobs (docs/reference/egs.md, "Before you begin")."""

STEP_LABEL = "overspill.dev/step"
"""The label that distinguishes a command's Job from a workload."""

JOB_DEADLINE = 300
"""Seconds after which a command Job is ended; kubectl either answers by then or never will."""

_PINNED = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")


def refuse_command(outcome: CheckedCommand, jobs: CommandJobs | None, service_account: str) -> RefusedCommand | None:
    """Refuse a command that a workspace does not allow, with or (None) without command Jobs; None if allowed."""
    if isinstance(outcome, RefusedCommand):
        return outcome
    if not isinstance(outcome, JobCommand):
        return None
    if jobs is None:
        what = " ".join(shortened(word, 20) for word in outcome.argv[:2] if not word.startswith("-"))
        return RefusedCommand(
            message=f"'{what}' would have to run in the cluster, and the workspace has no command Jobs",
            hint="write it as a manifest, or set commandJobs in the Workspace",
        )
    return _refuse_job(jobs, service_account)


def _refuse_job(jobs: CommandJobs, service_account: str) -> RefusedCommand | None:
    """Refuse a command Job without a pinned image, or without a service account of its own."""
    if _PINNED.fullmatch(jobs.image) is None:
        return RefusedCommand(
            message="the image of command Jobs is not pinned", hint="name@sha256:... in the Workspace"
        )
    if service_account in ("", "default"):
        return RefusedCommand(
            message="a command Job needs a service account of its own", hint="set spec.serviceAccount"
        )
    return None


def job_argv(outcome: CheckedCommand, jobs: CommandJobs | None, service_account: str) -> tuple[str, ...]:
    """Return the arguments of a command's Job; empty without one.

    A read-only command runs only where Jobs are possible anyway: nothing is lost without it.
    """
    if isinstance(outcome, JobCommand):
        return outcome.argv
    if isinstance(outcome, ReadOnlyCommand) and jobs is not None and _refuse_job(jobs, service_account) is None:
        return outcome.argv
    return ()


def explain_idle(outcome: CheckedCommand, jobs: CommandJobs | None, service_account: str) -> tuple[str, str]:
    """Return why an allowed command does not run anywhere, and the way out; empty texts if it runs.

    In EGS a failing step ends the sequence, so a command that only reads may be meant as a gate.
    """
    if not isinstance(outcome, ReadOnlyCommand) or job_argv(outcome, jobs, service_account):
        return "", ""
    if not outcome.argv:
        return "does not run: it would change nothing", "leave its step out"
    no_gate = "does not run, and the steps after it do not wait for it: it only reads"
    if jobs is None:
        hint = "set commandJobs in the Workspace if it is a gate, or leave its step out"
        return f"{no_gate}, and the workspace has no command Jobs", hint
    refusal = _refuse_job(jobs, service_account)
    return (no_gate, "") if refusal is None else (f"{no_gate}, and {refusal.message}", refusal.hint)


def command_job(
    placement: PlacementName, number: int, step: str, words: tuple[str, ...], *, image: str, account: str
) -> Json:
    """Make the Job of a command: not a hook, without a TTL, in exec form, unprivileged, with a deadline.

    A hook would run again with each sync, and a TTL makes Argo CD run it again (docs/background/upstream/argocd.md,
    "Commands as Jobs"). The name contains a digest of the command and image, since a Job cannot be changed: another
    command or image is another Job.
    """
    ordinal = f"{number:02d}"
    digest = hashlib.sha256("\0".join((*words, image, account)).encode()).hexdigest()[:8]
    room = 63 - len(f"{placement}-{ordinal}--{digest}")
    label = re.sub(r"[^a-z0-9]+", "-", step.lower()).strip("-")[: max(room, 0)].strip("-")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "-".join(part for part in (placement, ordinal, label, digest) if part),
            "namespace": JOB_NAMESPACE,
            "labels": {PLACEMENT_LABEL: str(placement), STEP_LABEL: ordinal},
        },
        "spec": {
            "backoffLimit": 1,
            "activeDeadlineSeconds": JOB_DEADLINE,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "serviceAccountName": account,
                    "automountServiceAccountToken": True,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [
                        {
                            "name": "cmd",
                            "image": image,
                            "command": list(words),
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                            },
                            "resources": {
                                "requests": {"cpu": "50m", "memory": "64Mi"},
                                "limits": {"memory": "256Mi"},
                            },
                        }
                    ],
                },
            },
        },
    }
