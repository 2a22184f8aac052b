"""The deploy spec: from the fields of a file to the model, with the problems between its parts.

EGS's older helmFlags, a text of Helm's own options, are read into the newer object (docs/reference/egs.md, R10).
"""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice

from reconciler.core.expressions import render
from reconciler.core.schema.egs.deploy import DeployFile, HelmConfigFile
from reconciler.errors import Severity
from reconciler.model.units import parse_duration
from reconciler.model.workload import Command, DeploySpec, HelmConfig, HelmFlags, Json, ManifestResource, Step, StepType
from reconciler.text.findings import Finding, Loc, dotted, shortened
from reconciler.text.spelling import suggested

_SWITCHES = {
    "--atomic": "atomic",
    "--cleanup-on-fail": "cleanup_on_fail",
    "--create-namespace": "create_namespace",
    "--skip-crds": "skip_crds",
    "--wait": "wait",
}
_ELSEWHERE = {
    "--version": "write it as version:",
    "--set": "write it under values:",
    "--set-string": "write it under values:",
    "--set-file": "write it under values:",
    "--set-json": "write it under values:",
    "--values": "write them under values:",
    "-f": "write them under values:",
    "--namespace": "write it as releaseNamespace:",
    "-n": "write it as releaseNamespace:",
    "--repo": "write it as repoURL:",
}
_MOST_FLAGS = 20
"""Problems that are reported for one line of flags."""
_KNOWN = "--atomic, --cleanup-on-fail, --create-namespace, --skip-crds, --timeout and --wait are read"


def read_flags(text: str, loc: Loc) -> tuple[HelmFlags, tuple[Finding, ...]]:
    """Read a line of options; unknown ones are reported at `loc` and left out."""
    try:
        words = deque(shlex.split(text))
    except ValueError as error:
        return HelmFlags(), (Finding(loc=loc, message=f"{shortened(text)!r} is no list of options: {error}"),)
    switches: dict[str, bool] = {}
    timeout: timedelta | None = None
    findings: list[Finding] = []
    while words and len(findings) < _MOST_FLAGS:
        option, equals, given = words.popleft().partition("=")
        # 1. A switch, on its own or with =true or =false.
        if option in _SWITCHES and given in ("", "true", "false"):
            switches[_SWITCHES[option]] = given != "false"
        # 2. The only option with an argument that is ours to read.
        elif option == "--timeout":
            duration = given if equals else words.popleft() if words else ""
            try:
                timeout = parse_duration(shortened(duration))
            except ValueError as error:
                findings.append(Finding(loc=loc, message=f"--timeout: {error}"))
        # 3. An option that is harmless and has no effect here.
        elif option == "--debug":
            findings.append(Finding(loc=loc, message="--debug has no effect", severity=Severity.WARNING))
        # 4. An option that another field states, or an unsupported one.
        else:
            findings.append(
                Finding(loc=loc, message=f"{shortened(option)} is not read here", hint=_ELSEWHERE.get(option, _KNOWN))
            )
            if option in _ELSEWHERE and not equals and words and not words[0].startswith("-"):
                words.popleft()
    return HelmFlags(timeout=timeout, **switches), tuple(findings)


_PART_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_MOST_FINDINGS = 100
"""Problems of each kind that are reported."""
_MOST_HINTS = 10
_MOST_COMPARED = 200
"""Steps that get a suggestion, and names that each is compared with, since comparing is slow."""
_LISTS = {
    StepType.HELM: ("helmConfig", "helm config"),
    StepType.MANIFEST: ("manifestResources", "manifest"),
    StepType.COMMAND: ("cmdExec", "command"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """The field names of a file or body, for findings that use the usual names."""

    # Other names of fields of a spec.
    names: Mapping[str, str] = field(default_factory=dict)
    # Whether it is a body, whose fields have no `spec` around them.
    bare: bool = False
    # Positions of manifests whose objects are beside their names.
    flat: frozenset[int] = frozenset()
    # Names of the objects that `spec.from` has added to the first `own` of the file.
    sourced: tuple[str, ...] = ()
    own: int = 0

    def of(self, finding: Finding) -> Finding:
        """Translate the location of a finding into the field names of the file or body."""
        if finding.loc[:1] != ("spec",):
            return finding
        rest = finding.loc[1:]
        if self.sourced and (where := self._in_source(rest)):
            return replace(finding, loc=("spec", "from"), message=f"{where}: {finding.message}")
        if rest and rest[0] in self.names:
            rest = (self.names[str(rest[0])], *rest[1:])
        if rest[2:3] == ("manifest",) and rest[0] == "manifestResources" and rest[1] in self.flat:
            rest = (*rest[:2], *(rest[4:] if rest[3:] in _BESIDE else rest[3:]))
        return replace(finding, loc=rest if self.bare else ("spec", *rest))

    def _in_source(self, rest: Loc) -> str:
        """Return the place in an object that `spec.from` has added; empty for any other."""
        index = rest[1] if rest[:1] == ("manifestResources",) and len(rest) > 1 else None
        if not isinstance(index, int) or index < self.own:
            return ""
        return dotted((self.sourced[index - self.own], *(part for part in rest[2:] if part != "manifest")))

    def called(self, name: str) -> str:
        """Return the name of a field in this file or body."""
        return self.names.get(_USUAL.get(name, name), name)


_USUAL = {"clusterNames": "clusters"}
"""Fields whose names in findings differ from those in records."""
_BESIDE = (("metadata", "name"), ("metadata", "namespace"))
"""Metadata that the flattened form keeps beside the name of the object."""


def charts_field(file: DeployFile) -> str:
    """Return the field that holds the charts of a file."""
    return "helmConfig" if file.helm_config or not file.helm_configs else "helmConfigs"


def check_spec(spec: DeploySpec) -> Iterator[Finding]:
    """Check names, steps and expressions of a spec against each other."""
    yield from islice(_parts(spec), _MOST_FINDINGS)
    yield from islice(_steps(spec), _MOST_FINDINGS)
    yield from render.check_expressions(spec)


def deploy_spec(file: DeployFile, findings: list[Finding]) -> DeploySpec:
    """Turn the lists of a file into the model's, with default names; problems are added to `findings`."""
    manifests = []
    for index, resource in enumerate(file.manifest_resources):
        loc: Loc = ("spec", "manifestResources", index)
        metadata = resource.manifest.get("metadata")
        own = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
        name = _part_name(resource.name, own, "the object's name", loc, findings)
        manifests.append(ManifestResource(name=name, manifest=resource.manifest))
    findings += [
        Finding(
            loc=("spec", "steps", index, "preodicCheckTime"),
            message="has no effect here",
            hint="helmFlags.timeout says how long a chart may take",
            severity=Severity.WARNING,
        )
        for index, step in enumerate(file.steps)
        if step.preodic_check_time is not None
    ]
    findings += _idle_account(file)
    return DeploySpec(
        helm=tuple(
            _chart(chart, ("spec", "helmConfig", index), findings)
            for index, chart in enumerate(file.helm_config or file.helm_configs)
        ),
        manifests=tuple(manifests),
        commands=tuple(Command(name=command.name, cmd=command.cmd) for command in file.cmd_exec),
        steps=tuple(Step(name=step.name, type=step.type) for step in file.steps),
        burst_duration=file.burst_duration,
        deletion_policy=file.deletion_policy,
        service_account=file.service_account or file.service_account_name,
    )


def _idle_account(file: DeployFile) -> Iterator[Finding]:
    """Warn of a service account without a command step: the engine applies everything else in its own name."""
    name = "serviceAccount" if file.service_account else "serviceAccountName" if file.service_account_name else ""
    if name and file.steps and all(step.type is not StepType.COMMAND for step in file.steps):
        message = "has no effect: it is for commands, and no step is one"
        hint = "overspill bootstrap says what the engine may do"
        yield Finding(loc=("spec", name), message=message, hint=hint, severity=Severity.WARNING)


def _chart(file: HelmConfigFile, loc: Loc, findings: list[Finding]) -> HelmConfig:
    """Turn one chart into the model's."""
    flags = HelmFlags()
    if isinstance(file.helm_flags, str):
        flags, wrong = read_flags(file.helm_flags, (*loc, "helmFlags"))
        findings += wrong
    elif file.helm_flags is not None:
        flags = HelmFlags(
            atomic=file.helm_flags.atomic,
            cleanup_on_fail=file.helm_flags.cleanup_on_fail,
            create_namespace=file.helm_flags.create_namespace,
            skip_crds=file.helm_flags.skip_crds,
            wait=file.helm_flags.wait,
            timeout=file.helm_flags.timeout,
        )
    return HelmConfig(
        name=_part_name(file.name, file.release_name, "its releaseName", loc, findings),
        chart=file.chart,
        release_name=file.release_name,
        release_namespace=file.release_namespace,
        repo_name=file.repo_name,
        repo_url=file.repo_url,
        version=file.version,
        values=file.values,
        secret_ref="" if file.secret_ref is None else file.secret_ref.name,
        flags=flags,
    )


def _part_name(name: str, default: Json, source: str, loc: Loc, findings: list[Finding]) -> str:
    """Return the name of a part for steps, by default that of its object or release (docs/reference/egs.md, R5)."""
    if name:
        return name
    if isinstance(default, str) and _PART_NAME.fullmatch(default):
        message = f"has no name; steps know it as {default}, {source}"
        findings.append(Finding(loc=loc, message=message, hint=f"try name: {default}", severity=Severity.WARNING))
        return default
    findings.append(Finding(loc=(*loc, "name"), message="is required"))
    return ""


def _parts(spec: DeploySpec) -> Iterable[Finding]:
    """Report parts that are missing, duplicate, badly named, or used by no step."""
    if not (spec.helm or spec.manifests or spec.commands):
        hint = "list something under helmConfig, manifestResources or cmdExec"
        yield Finding(loc=("spec",), message="deploys nothing", hint=hint)
        return
    applied = {(step.type, step.name) for step in spec.steps}
    misspelt = has_unknown_step(spec)
    for kind, names in _names(spec).items():
        field, word = _LISTS[kind]
        seen: set[str] = set()
        for index, name in enumerate(names):
            loc: Loc = ("spec", field, index)
            if not name:
                continue  # reported as missing already
            if _PART_NAME.fullmatch(name) is None:
                message = f"{shortened(name)!r} is not a name of letters, digits, '-', '_' and '.' (63 at most)"
                yield Finding(loc=(*loc, "name"), message=message)
            elif name in seen:
                yield Finding(loc=(*loc, "name"), message=f"another {word} is called {name}")
            elif spec.steps and (kind, name) not in applied and not misspelt:
                yield Finding(
                    loc=loc,
                    message=f"no step applies {word} {name}",
                    hint=f"try a step {{name: {name}, type: {kind}}}",
                    severity=Severity.WARNING,
                )
            seen.add(name)


def _steps(spec: DeploySpec) -> Iterable[Finding]:
    """Report steps that are missing, duplicate, or without a part."""
    listed = _names(spec)
    if not spec.steps and any(listed.values()):
        first = next((name, kind) for kind in StepType for name in listed[kind])
        hint = f"try steps: [{{name: {first[0]}, type: {first[1]}}}]"
        yield Finding(loc=("spec", "steps"), message="is required: only what a step names is applied", hint=hint)
    names = {kind: frozenset(listed[kind]) for kind in StepType}
    hints = _MOST_HINTS
    seen: set[Step] = set()
    for index, step in enumerate(spec.steps):
        loc: Loc = ("spec", "steps", index)
        if step.name not in names[step.type]:
            others = [kind for kind in StepType if step.name in names[kind]]
            guess = ""
            if not others and hints and len(names[step.type]) <= _MOST_COMPARED:
                hints -= 1
                guess = suggested(step.name, names[step.type])
            yield Finding(
                loc=(*loc, "name"),
                message=f"step {shortened(step.name)} references {_LISTS[step.type][1]} {shortened(step.name)}"
                " that doesn't exist",
                hint=f"try type: {others[0]}" if others else f"try '{guess}'" if guess else "",
            )
        elif step in seen:
            yield Finding(
                loc=loc, message=f"{step.type} {step.name} is already an earlier step", hint="try removing one"
            )
        seen.add(step)


def has_unknown_step(spec: DeploySpec) -> bool:
    """Return whether a step names no part: that is an error, and which parts the steps apply is not known."""
    listed = _names(spec)
    return any(step.name not in listed[step.type] for step in spec.steps)


def _names(spec: DeploySpec) -> Mapping[StepType, tuple[str, ...]]:
    """List the names that steps of each type can refer to."""
    return {
        StepType.HELM: tuple(chart.name for chart in spec.helm),
        StepType.MANIFEST: tuple(resource.name for resource in spec.manifests),
        StepType.COMMAND: tuple(command.name for command in spec.commands),
    }


def used_namespaces(declared: Iterable[str], spec: DeploySpec) -> tuple[str, ...]:
    """List the declared namespaces of a file, else those that its parts name outright."""
    names = list(declared) or [
        *(chart.release_namespace for chart in spec.helm),
        *(
            resource.manifest.get("metadata", {}).get("namespace")
            for resource in spec.manifests
            if _has_metadata(resource)
        ),
    ]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name and "{{" not in name))


def _has_metadata(resource: ManifestResource) -> bool:
    """Return whether an object has metadata."""
    return isinstance(resource.manifest.get("metadata"), Mapping)
