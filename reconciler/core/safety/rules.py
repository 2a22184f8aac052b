"""The safety rules over what a template deploys (docs/reference/fleet.md, "WorkloadTemplate").

Called on a template when its file is loaded and again on the rendered spec: leaves that still hold an expression are
skipped until then. Charts that Overspill renders itself go through `check_chart_objects` as well. The rules:

1. no credential reaches git: no Secret with data, no value that looks like a token (`credentials`);
2. no kinds but workloads, their companions, and those that the workspace allows by ``group/Kind`` (`allowed_kinds`);
3. no namespace outside the workspace's list, if it has one;
4. nothing that an engine takes for an instruction: a kustomization, a List, Argo CD's skip marker; nothing that keeps
   an object from going with its placement (`lifetime`), and no label or annotation of Overspill's own
   (`reserved_names`);
5. charts are pinned to a version, commands need no shell;
6. fields that Kubernetes takes as text only are text: an expression that gives a number would fail in the cluster;
7. kinds, versions and names are valid in Kubernetes, so that they can name files;
8. webhooks of controllers take the object, as far as their rules are known (`core.validation.admission`);
9. requirements of pods can be read (`pod_template`), and their number (`pod_counts`);
10. an API server takes the object: its kind exists and has its fields (`core.validation`);
11. pods keep to the Pod Security level of the workspace (`pod_security`);
12. what an object holds whole, as an AppWrapper does, keeps to all of these rules (`held_objects`), and none of it
    outlives the placement, which deletes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.safety import commands, credentials
from reconciler.core.safety.allowed_kinds import refuse_kind
from reconciler.core.safety.lifetime import check_lifetime
from reconciler.core.safety.pod_security import check_pod_security
from reconciler.core.safety.reserved_names import check_reserved_names
from reconciler.core.safety.scope import outlives_placements
from reconciler.core.safety.texts import check_texts
from reconciler.core.validation.admission.table import check_admission
from reconciler.core.validation.objects import check_object, unknown_kind
from reconciler.core.workloads import pod_counts, pod_template
from reconciler.core.workloads.api_kinds import cluster_scoped, group_kind, is_list
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds
from reconciler.core.workloads.held_objects import held_objects
from reconciler.errors import Severity
from reconciler.model.ids import PlacementName, is_name
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, ObjectSchemas
from reconciler.model.policy import Workspace
from reconciler.model.workload import DeletionPolicy, DeploySpec, HelmConfig, Json, StepType
from reconciler.text import redaction
from reconciler.text.findings import Finding, Loc, dotted, shortened

MAX_RELEASE_NAME = 53
"""Helm's own bound."""

_NO_OBJECT, _OBJECT_HINT = "the manifest is no Kubernetes object", "it needs apiVersion and kind"

_EXACT = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")

_VERSION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_NAME = re.compile(r"(?!\.{1,2}$)[^/%\s]{1,253}")
"""Values that Kubernetes accepts as an apiVersion, a kind, and a name of any kind of object."""

_USER = re.compile(r"://[^/?#]*@")
_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105  # the type of a Secret, not what is in one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """Inputs of the rules."""

    workspace: Workspace
    rendered: bool
    """Whether expressions have been rendered already, so that braces are plain text."""
    kinds: Kinds
    """WorkloadKinds of the fleet repository."""
    schemas: ObjectSchemas
    placement: PlacementName | None = None
    """The placement that the expressions have been rendered for."""

    def later(self, text: Json) -> bool:
        """Return whether a text holds an expression, and so is checked once it is rendered."""
        return not self.rendered and isinstance(text, str) and has_expression(text)


def check_safety(
    spec: DeploySpec,
    workspace: Workspace,
    *,
    kinds: Kinds = NO_KINDS,
    schemas: ObjectSchemas = NO_SCHEMAS,
    rendered: bool = False,
    placement: PlacementName | None = None,
) -> tuple[Finding, ...]:
    """Return everything in a spec that the safety rules refuse, in the order of the file.

    `kinds` and `schemas` are those of the fleet repository. A `rendered` spec has no expressions: no check is put off.
    It is that of a `placement`.
    """
    rules = _Rules(workspace=workspace, rendered=rendered, kinds=kinds, schemas=schemas, placement=placement)
    findings: list[Finding] = []
    for index, chart in enumerate(spec.helm):
        findings.extend(_chart(chart, ("spec", "helmConfig", index), rules))
    for index, resource in enumerate(spec.manifests):
        loc = ("spec", "manifestResources", index, "manifest")
        findings += [
            *_object(resource.manifest, loc, rules),
            *pod_template.check_pod_template(resource.manifest, loc, kinds),
        ]
        findings += _without_reported(pod_counts.check_counts(resource.manifest, loc, kinds), findings)
        findings += _without_reported(_validate(resource.manifest, loc, rules, findings), findings)
        if spec.deletion_policy is DeletionPolicy.DELETE:
            findings.extend(check_lifetime(resource.manifest, loc))
        findings += _held(resource.manifest, loc, spec.deletion_policy, rules, findings)
    for index, command in enumerate(spec.commands):
        findings.extend(_command(command.cmd, ("spec", "cmdExec", index, "cmd"), spec, rules))
    if not any(finding.loc[:2] == ("spec", "cmdExec") for finding in findings):
        findings.extend(_idle_commands(spec, rules))
    return tuple(findings)


def _without_reported(more: Iterable[Finding], findings: Sequence[Finding]) -> list[Finding]:
    """Leave out findings at or below places that have an error already."""
    places = {finding.loc for finding in findings if finding.severity is Severity.ERROR}
    return [
        finding for finding in more if not any(finding.loc[:size] in places for size in range(len(finding.loc) + 1))
    ]


def _validate(
    manifest: Mapping[str, Json], loc: Loc, rules: _Rules, findings: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Check an object against the schema of its kind, unless it is refused as a whole."""
    if any(finding.loc in (loc, (*loc, "kind"), (*loc, "apiVersion")) for finding in findings):
        return ()
    if "sops" in manifest:  # the engine decrypts it, and takes this field off
        manifest = {field: value for field, value in manifest.items() if field != "sops"}
    return check_object(manifest, loc, rules.schemas, rules.kinds, rendered=rules.rendered)


def _held(
    manifest: Mapping[str, Json], loc: Loc, policy: DeletionPolicy, rules: _Rules, findings: Iterable[Finding]
) -> list[Finding]:
    """Check what an object holds whole as the object that its controller makes of it.

    What walks through the object has found some of that already. The end of the placement deletes what it holds, so
    that nothing of it may outlive the placement.
    """
    more: list[Finding] = []
    for place, inner in held_objects(manifest, rules.kinds):
        where = (*loc, *place)
        if not isinstance(inner, Mapping):
            more += [] if rules.later(inner) else [Finding(loc=where, message=_NO_OBJECT, hint=_OBJECT_HINT)]
            continue
        inside = [*_object(inner, where, rules)]
        if policy is DeletionPolicy.DELETE:
            inside += check_lifetime(inner, where)
            refused = any(finding.loc == (*where, "kind") for finding in inside)
            if not refused and outlives_placements(inner, rules.kinds, rules.schemas) and not _is_open(inner, rules):
                inside.append(_deleted(manifest, inner, where))
        more += [*inside, *_without_reported(_validate(inner, where, rules, inside), inside)]
    known = frozenset(findings)
    return [finding for finding in dict.fromkeys(more) if finding not in known]


def _is_open(manifest: Mapping[str, Json], rules: _Rules) -> bool:
    """Return whether an expression decides what an object is."""
    return rules.later(manifest.get("apiVersion")) or rules.later(manifest.get("kind"))


def _deleted(holder: Mapping[str, Json], manifest: Mapping[str, Json], loc: Loc) -> Finding:
    what, kind = shortened(str(manifest.get("kind"))), shortened(str(holder.get("kind")))
    return Finding(
        loc=loc,
        message=f"the end of the {kind} would delete this {what}, and with it all that others have in it",
        hint=f"make the {what} beside the {kind}, or give it a namespace if its kind has them",
    )


def exact_version(version: str) -> bool:
    """Return whether a chart's version is exact and no range."""
    return _EXACT.fullmatch(version) is not None


def check_chart_objects(
    manifests: Iterable[Mapping[str, Json]],
    loc: Loc,
    workspace: Workspace,
    kinds: Kinds = NO_KINDS,
    *,
    deletion_policy: DeletionPolicy = DeletionPolicy.DELETE,
    schemas: ObjectSchemas = NO_SCHEMAS,
    placement: PlacementName | None = None,
) -> tuple[Finding, ...]:
    """Check the objects of a chart that Overspill has rendered for a placement; `loc` is the place of the chart."""
    rules = _Rules(workspace=workspace, rendered=True, kinds=kinds, schemas=schemas, placement=placement)
    findings: list[Finding] = []
    for manifest in manifests:
        name = _metadata(manifest).get("name", "")
        what = f"the chart makes {shortened(str(manifest.get('kind', '')))} {shortened(str(name))}"
        inside = [
            *_object(manifest, (), rules),
            *(check_lifetime(manifest, (), of_chart=True) if deletion_policy is DeletionPolicy.DELETE else ()),
        ]
        inside += _held(manifest, (), deletion_policy, rules, inside)
        fields = (
            replace(finding, message=f"{dotted(finding.loc)}: {finding.message}" if finding.loc else finding.message)
            for finding in _without_reported(_validate(manifest, (), rules, inside), inside)
        )
        findings += [replace(finding, loc=loc, message=f"{what}: {finding.message}") for finding in (*inside, *fields)]
    return tuple(findings)


def _chart(chart: HelmConfig, loc: Loc, rules: _Rules) -> Iterator[Finding]:
    unpinned = not rules.later(chart.version) and not exact_version(chart.version)
    if unpinned and not rules.workspace.allow_unpinned_charts:
        what = f"{shortened(chart.version)!r} is not one version" if chart.version else "the chart has no version"
        yield Finding(loc=(*loc, "version"), message=what, hint="write it out, as in 0.1.7, or set allowUnpinnedCharts")
    for field, text in (("repoURL", chart.repo_url), ("chart", chart.chart), ("version", chart.version)):
        if _USER.search(text):
            hint = "leave it out; Argo CD has credentials of its own for a repository"
            yield Finding(loc=(*loc, field), message="a URL may not hold a user or a password", hint=hint)
        else:
            yield from check_texts(text, (*loc, field))
    name = chart.release_name
    if not rules.later(name) and (not is_name(name) or len(name) > MAX_RELEASE_NAME):
        message = f"{shortened(name)!r} cannot name a release"
        yield Finding(loc=(*loc, "releaseName"), message=message, hint="a-z, 0-9 and dashes, at most 53 characters")
    yield from _namespace(chart.release_namespace, (*loc, "releaseNamespace"), rules)
    yield from check_texts(chart.values, (*loc, "values"))


def _object(manifest: Mapping[str, Json], loc: Loc, rules: _Rules) -> Iterator[Finding]:
    if not _is_text(manifest.get("apiVersion")) or not _is_text(manifest.get("kind")):
        yield Finding(loc=loc, message=_NO_OBJECT, hint=_OBJECT_HINT)
        return
    if rules.later(manifest["apiVersion"]) or rules.later(manifest["kind"]):
        return  # what it is going to be is looked at once it is
    for field, grammar in (("apiVersion", _VERSION), ("kind", _KIND)):
        if not grammar.fullmatch(manifest[field]):
            message = f"{shortened(manifest[field])!r} is no {field} of Kubernetes"
            yield Finding(loc=(*loc, field), message=message)
            return
    kind = group_kind(manifest)
    if kind.startswith(("kustomize.config.k8s.io/", "/Kustomization")):
        yield Finding(loc=(*loc, "kind"), message="a kustomization is an instruction to the engine, not an object")
    elif is_list(manifest):
        what = "a List" if manifest["kind"].endswith("List") else "to engines an object with items"
        yield Finding(loc=(*loc, "kind"), message=f"{what} is many objects", hint="give each its own entry")
    elif why := refuse_kind(kind, rules.workspace, rules.kinds):
        hint = f"the workspace's allowedKinds would have to hold {kind}"
        # A kind that no cluster has is misspelt as a rule, and its nearest name helps more than a permission.
        misspelt = unknown_kind(manifest, loc, rules.schemas)
        yield misspelt or Finding(loc=(*loc, "kind"), message=why, hint=hint)
    if kind == "/Secret" and manifest.get("type") == _ACCOUNT_TOKEN:
        message = "a Secret of this type is filled with the token of a service account"
        yield Finding(loc=(*loc, "type"), message=message, hint="let pods use the account itself")
    if kind == "/Secret" and _has_plain_data(manifest):
        hint = "use SOPS, a SealedSecret, an ExternalSecret, or a Secret that exists there"
        yield Finding(loc=loc, message="a Secret with data may not lie in git", hint=hint)
        return
    yield from _contents(manifest, kind, loc, rules)


def _contents(manifest: Mapping[str, Json], kind: str, loc: Loc, rules: _Rules) -> Iterator[Finding]:
    """Check an object of an allowed kind."""
    metadata = _metadata(manifest)
    name = metadata.get("name")
    if not name or isinstance(name, dict | list):
        yield Finding(loc=(*loc, "metadata"), message="the object has no name", hint="set metadata.name")
    elif kind == "/Namespace" and isinstance(name, str):
        yield from _namespace(name, (*loc, "metadata", "name"), rules)
    elif isinstance(name, str) and not rules.later(name) and not _NAME.fullmatch(name):
        message = f"{shortened(name)!r} cannot be the name of an object"
        yield Finding(loc=(*loc, "metadata", "name"), message=message, hint="at most 253 characters")
    if not cluster_scoped(kind) and (namespace := metadata.get("namespace")) is not None:
        yield from _namespace(namespace, (*loc, "metadata", "namespace"), rules)
    if not cluster_scoped(kind):
        yield from check_pod_security(manifest, loc, rules.workspace, rules.kinds, rules.later)
    yield from check_reserved_names(manifest, loc, rules.placement, rules.later)
    yield from check_admission(manifest, loc, rules.kinds, rendered=rules.rendered)
    yield from _non_text(manifest, kind, loc, rules)
    yield from check_texts(manifest, loc)


def _non_text(manifest: Mapping[str, Json], kind: str, loc: Loc, rules: _Rules) -> Iterator[Finding]:
    """Check for values that have to be text: names, labels, a ConfigMap's data, variables."""
    metadata = _metadata(manifest)
    texts: list[tuple[Loc, Json]] = [(("metadata", "name"), metadata.get("name"))]
    maps: list[tuple[Loc, Json]] = [(("metadata", part), metadata.get(part)) for part in ("labels", "annotations")]
    if kind == "/ConfigMap":
        maps.append((("data",), manifest.get("data")))
    for place, value in maps:
        if isinstance(value, dict):
            texts.extend(((*place, key), item) for key, item in value.items())
    texts.extend(pod_template.environment_values(manifest, rules.kinds))
    for place, value in texts:
        if isinstance(value, bool | int | float):
            message = f"Kubernetes takes a text here, not {str(value).lower()}"
            yield Finding(loc=(*loc, *place), message=message, hint="quote it, or end the expression with | string")


def _command(cmd: str, loc: Loc, spec: DeploySpec, rules: _Rules) -> Iterator[Finding]:
    """Check a command line as written and as split: quoting can hide a text from the first check."""
    findings = [*_words(cmd.split(), loc), *check_texts(cmd, loc)]
    outcome = None if rules.later(cmd) else commands.read_command(cmd)
    if outcome is None:
        pass
    elif refusal := commands.refuse_command(outcome, rules.workspace.command_jobs, spec.service_account):
        findings.append(Finding(loc=loc, message=refusal.message, hint=refusal.hint))
    elif isinstance(outcome, commands.ObjectCommand):
        inside = [*_contents(outcome.manifest, group_kind(outcome.manifest), (), rules)]
        # The marked object may be one of another placement, whatever this one retains.
        if outcome.partial or spec.deletion_policy is DeletionPolicy.DELETE:
            inside += check_lifetime(outcome.manifest, ())
        findings += [replace(finding, loc=loc) for finding in inside]
    elif isinstance(outcome, commands.JobCommand | commands.ReadOnlyCommand):
        findings += [replace(finding, loc=loc) for finding in check_texts(list(outcome.argv), ())]
        findings += [*_words(outcome.argv, loc), *_namespace(outcome.namespace, loc, rules)]
    yield from dict.fromkeys(findings)


def _idle_commands(spec: DeploySpec, rules: _Rules) -> Iterator[Finding]:
    """Warn of command steps that run nowhere, and of a service account that no step uses."""
    steps = {step.name for step in spec.steps if step.type is StepType.COMMAND}
    jobs = rules.workspace.command_jobs
    used = [(index, command) for index, command in enumerate(spec.commands) if command.name in steps]
    if any(rules.later(command.cmd) for _, command in used):
        return
    outcomes = [(index, command.name, commands.read_command(command.cmd)) for index, command in used]
    for index, name, outcome in outcomes:
        message, hint = commands.explain_idle(outcome, jobs, spec.service_account)
        if message:
            loc: Loc = ("spec", "cmdExec", index, "cmd")
            text = f"step {shortened(name)} {message}"
            yield Finding(loc=loc, message=text, hint=hint, severity=Severity.WARNING)
    objects = all(isinstance(outcome, commands.ObjectCommand) for _, _, outcome in outcomes)
    if spec.service_account and outcomes and objects:
        message = "has no effect: none of its commands runs as a Job, and the engine applies objects in its own name"
        account: Loc = ("spec", "serviceAccount")
        yield Finding(loc=account, message=message, hint="leave it out", severity=Severity.WARNING)


def _words(words: Iterable[str], loc: Loc) -> Iterator[Finding]:
    """Check the words of a command line for credentials; many are a name and its value."""
    for word in words:
        name, equals, value = word.removeprefix("--from-literal=").lstrip("-").partition("=")
        if what := redaction.credential(value.strip("'\"") if equals else word, name if equals else ""):
            yield credentials.leaked(loc, what)


def _namespace(namespace: Json, loc: Loc, rules: _Rules) -> Iterator[Finding]:
    """Check a namespace of an object, a release or a command; an empty one becomes the target namespace."""
    workspace = rules.workspace
    if namespace == "" or rules.later(namespace):
        return
    if not isinstance(namespace, str) or not is_name(namespace):
        yield Finding(loc=loc, message=f"{shortened(str(namespace))!r} cannot be the name of a namespace")
    elif workspace.namespaces and namespace not in workspace.namespaces:
        allowed = ", ".join(workspace.namespaces)
        message = f"{namespace!r} is no namespace of workspace {workspace.name}"
        yield Finding(loc=loc, message=message, hint=f"it has {shortened(allowed, 200)}")


def _has_plain_data(manifest: Mapping[str, Json]) -> bool:
    """Return whether a Secret has data that is not encrypted by SOPS."""
    parts = [part for part in (manifest.get("data"), manifest.get("stringData")) if part]
    encrypted = isinstance(manifest.get("sops"), dict) and all(
        isinstance(part, dict) and all(isinstance(text, str) and text.startswith("ENC[") for text in part.values())
        for part in parts
    )
    return bool(parts) and not encrypted


def _metadata(manifest: Mapping[str, Json]) -> Mapping[str, Json]:
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and value != ""
