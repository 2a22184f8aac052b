"""The safety rules over what a template deploys (docs/fleet.md, "WorkloadTemplate").

Called on a template when its file is loaded and again on the rendered spec: leaves that still hold an expression are
skipped until then. Charts that Overspill renders itself go through `check_chart_objects` as well. The rules:

1. no credential reaches git: no Secret with data, no value that looks like a token (`text.redaction`);
2. no RBAC, Argo CD or Flux objects, CRDs or cluster-scoped kinds that the workspace does not allow by ``group/Kind``;
3. no namespace that the workspace does not name, where it names any;
4. nothing that an engine takes for an instruction: a kustomization, a List, Argo CD's skip marker, an annotation that
   keeps an object from going with its placement;
5. charts are pinned to a version, commands need no shell;
6. fields that Kubernetes takes as text only are text: an expression that gives a number would fail in the cluster;
7. kinds, versions and names are valid in Kubernetes, so that they can name files;
8. a LeaderWorkerSet passes the checks of its own webhook (`group_rules`);
9. requirements of pods can be read (`pod_template`), and their number (`pod_counts`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.safety import commands, group_rules
from reconciler.core.workloads import pod_counts, pod_template
from reconciler.core.workloads.api_kinds import cluster_scoped, group_kind, is_list, refused
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds
from reconciler.model.ids import is_name
from reconciler.model.policy import Workspace
from reconciler.model.workload import DeletionPolicy, DeploySpec, HelmConfig, Json
from reconciler.text import redaction
from reconciler.text.findings import Finding, Loc, shortened

SKIP_MARKER = "+argocd:skip-file-rendering"
"""Argo CD skips a file that contains this text anywhere, even in a value."""

MAX_RELEASE_NAME = 53
"""Helm's own bound."""

_EXACT = re.compile(r"v?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")

_VERSION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_NAME = re.compile(r"(?!\.{1,2}$)[^/%\s]{1,253}")
"""Values that Kubernetes accepts as an apiVersion, a kind, and a name of any kind of object."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_USER = re.compile(r"://[^/?#]*@")
_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105  # the type of a Secret, not what is in one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """Inputs of the rules."""

    workspace: Workspace
    rendered: bool
    """Whether expressions have been rendered already, so that braces are only braces."""
    kinds: Kinds
    """WorkloadKinds of the fleet repository."""

    def later(self, text: Json) -> bool:
        """Tell whether a text holds an expression, and so is checked once it is rendered."""
        return not self.rendered and isinstance(text, str) and has_expression(text)


def check_safety(
    spec: DeploySpec, workspace: Workspace, *, kinds: Kinds = NO_KINDS, rendered: bool = False
) -> tuple[Finding, ...]:
    """Return everything in a spec that the safety rules refuse, in the order of the file.

    `kinds` are the WorkloadKinds of the fleet repository. A `rendered` spec has no expressions: no check is put off.
    """
    rules = _Rules(workspace=workspace, rendered=rendered, kinds=kinds)
    findings: list[Finding] = []
    for index, chart in enumerate(spec.helm):
        findings.extend(_chart(chart, ("spec", "helmConfig", index), rules))
    for index, resource in enumerate(spec.manifests):
        loc = ("spec", "manifestResources", index, "manifest")
        findings += [
            *_object(resource.manifest, loc, rules),
            *pod_template.check_pod_template(resource.manifest, loc, kinds),
        ]
        told = {finding.loc for finding in findings}
        findings += [
            check_count
            for check_count in pod_counts.check_counts(resource.manifest, loc, kinds)
            if check_count.loc not in told
        ]
        if spec.deletion_policy is DeletionPolicy.DELETE:
            findings.extend(_retained(resource.manifest, loc))
    for index, command in enumerate(spec.commands):
        findings.extend(_command(command.cmd, ("spec", "cmdExec", index, "cmd"), spec, rules))
    return tuple(findings)


def exact_version(version: str) -> bool:
    """Tell whether a chart's version is exact and no range."""
    return _EXACT.fullmatch(version) is not None


def check_chart_objects(
    manifests: Iterable[Mapping[str, Json]], loc: Loc, workspace: Workspace, kinds: Kinds = NO_KINDS
) -> tuple[Finding, ...]:
    """Check the objects of a chart that Overspill has rendered; `loc` is the place of the chart."""
    rules = _Rules(workspace=workspace, rendered=True, kinds=kinds)
    findings: list[Finding] = []
    for manifest in manifests:
        name = _metadata(manifest).get("name", "")
        what = f"the chart makes {shortened(str(manifest.get('kind', '')))} {shortened(str(name))}"
        findings.extend(
            Finding(loc=loc, message=f"{what}: {finding.message}", hint=finding.hint)
            for finding in _object(manifest, (), rules)
        )
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
            yield from _leaves(text, (*loc, field))
    name = chart.release_name
    if not rules.later(name) and (not is_name(name) or len(name) > MAX_RELEASE_NAME):
        message = f"{shortened(name)!r} cannot name a release"
        yield Finding(loc=(*loc, "releaseName"), message=message, hint="a-z, 0-9 and dashes, at most 53 characters")
    yield from _namespace(chart.release_namespace, (*loc, "releaseNamespace"), rules)
    yield from _leaves(chart.values, (*loc, "values"))


def _object(manifest: Mapping[str, Json], loc: Loc, rules: _Rules) -> Iterator[Finding]:
    if not _is_text(manifest.get("apiVersion")) or not _is_text(manifest.get("kind")):
        yield Finding(loc=loc, message="the manifest is no Kubernetes object", hint="it needs apiVersion and kind")
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
    if is_list(manifest):
        what = "a List" if manifest["kind"].endswith("List") else "to engines an object with items"
        yield Finding(loc=(*loc, "kind"), message=f"{what} is many objects", hint="give each its own entry")
    if (why := refused(kind)) and kind not in rules.workspace.allowed_kinds:
        hint = f"the workspace's allowedKinds would have to hold {kind}"
        yield Finding(loc=(*loc, "kind"), message=f"{manifest['kind']} {why}, which templates may not", hint=hint)
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
    if kind == group_rules.LWS:
        yield from group_rules.check_groups(manifest, loc)
    yield from _non_text(manifest, kind, loc, rules)
    yield from _leaves(manifest, loc)


def _retained(manifest: Mapping[str, Json], loc: Loc) -> Iterator[Finding]:
    """Check for annotations by which an object would outlive its placement."""
    annotations = _metadata(manifest).get("annotations")
    for key, value in annotations.items() if isinstance(annotations, dict) else ():
        options = [part.strip() for part in str(value).split(",")]
        stays = any(part.startswith(("Prune=", "Delete=")) and not part.endswith("=true") for part in options)
        if (key == "argocd.argoproj.io/sync-options" and stays) or (
            key == "helm.sh/resource-policy" and "keep" in options
        ):
            message = "this keeps the object in the cluster when its placement goes"
            hint = "set deletionPolicy: Retain for the whole template"
            yield Finding(loc=(*loc, "metadata", "annotations", key), message=message, hint=hint)


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
    findings = [*_words(cmd.split(), loc), *_leaves(cmd, loc)]
    outcome = None if rules.later(cmd) else commands.read_command(cmd)
    if outcome is None:
        pass
    elif refusal := commands.refuse_command(outcome, rules.workspace.command_jobs, spec.service_account):
        findings.append(Finding(loc=loc, message=refusal.message, hint=refusal.hint))
    elif isinstance(outcome, commands.ObjectCommand):
        inside = _contents(outcome.manifest, group_kind(outcome.manifest), (), rules)
        findings += [replace(finding, loc=loc) for finding in inside]
    elif isinstance(outcome, commands.JobCommand | commands.ReadOnlyCommand):
        findings += [replace(finding, loc=loc) for finding in _leaves(list(outcome.argv), ())]
        findings += [*_words(outcome.argv, loc), *_namespace(outcome.namespace, loc, rules)]
    yield from dict.fromkeys(findings)


def _words(words: Iterable[str], loc: Loc) -> Iterator[Finding]:
    """Check the words of a command line for credentials; many are a name and its value."""
    for word in words:
        name, equals, value = word.removeprefix("--from-literal=").lstrip("-").partition("=")
        if what := redaction.credential(value.strip("'\"") if equals else word, name if equals else ""):
            yield _leaked(loc, what)


def _namespace(namespace: Json, loc: Loc, rules: _Rules) -> Iterator[Finding]:
    """Check a namespace of an object, a release or a command; an empty one becomes the target namespace."""
    workspace = rules.workspace
    if namespace == "" or rules.later(namespace):
        return
    if not isinstance(namespace, str) or not is_name(namespace):
        yield Finding(loc=loc, message=f"{shortened(str(namespace))!r} cannot be the name of a namespace")
    elif workspace.namespaces and namespace not in workspace.namespaces:
        known = ", ".join(workspace.namespaces)
        message = f"{namespace!r} is no namespace of workspace {workspace.name}"
        yield Finding(loc=loc, message=message, hint=f"it has {shortened(known, 200)}")


_SKIP = f"the text {SKIP_MARKER!r} would make Argo CD leave the whole file out"


def _leaves(value: Json, loc: Loc, name: str = "") -> Iterator[Finding]:
    """Check every text below a value; `name` is the key of a text at this place."""
    if isinstance(value, str):
        yield from _text(value, loc)
        if what := redaction.credential(value, name):
            yield _leaked(loc, what)
    elif isinstance(value, dict):
        variable = value.get("name")
        for key, item in value.items():
            yield from _text(key, (*loc, key))
            called = variable if key == "value" and isinstance(variable, str) else key
            yield from _leaves(item, (*loc, key), called)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*loc, index), name)


def _text(text: str, loc: Loc) -> Iterator[Finding]:
    """Check a key or a value for content that no text may have."""
    if SKIP_MARKER in text:
        yield Finding(loc=loc, message=_SKIP)
    if not text.isascii() and _SURROGATE.search(text):
        yield Finding(loc=loc, message="the text holds half a character (a lone surrogate), which no file can")


def _leaked(loc: Loc, what: str) -> Finding:
    hint = "refer to a Secret in the cluster, or write <...> where people fill it in"
    return Finding(loc=loc, message=f"this looks like {what}, which may not lie in git", hint=hint)


def _has_plain_data(manifest: Mapping[str, Json]) -> bool:
    """Tell whether a Secret has data that is not encrypted by SOPS."""
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
