"""The safety rules of design.md, section 8, over what a template deploys.

Called on a template when its file is loaded and again on the rendered spec, since an expression can become anything:
leaves that still hold one are passed over here. Charts that Overspill renders itself go through `objects` as well. The
rules:

1. no credential reaches git: no Secret with data, no value that looks like a token (`secrets`);
2. no RBAC, Argo CD or Flux objects, CRDs or cluster-scoped kinds that the workspace does not allow by ``group/Kind``;
3. no namespace that the workspace does not name, where it names any;
4. nothing that an engine takes for an instruction: a kustomization, a List, Argo CD's skip marker;
5. charts are pinned to a version, commands need no shell;
6. what Kubernetes takes as text only is text: an expression that gives a number would fail in the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from reconciler.core import commandjobs, commands, secrets
from reconciler.core.dialect import has_expression
from reconciler.core.findings import Finding, Loc, shortened
from reconciler.core.kinds import POD_TEMPLATES, cluster_scoped, group_kind, refused
from reconciler.model.ids import is_name
from reconciler.model.policy import Workspace
from reconciler.model.workload import DeploySpec, HelmConfig, Json

SKIP_MARKER = "+argocd:skip-file-rendering"
"""Argo CD passes over a file that holds this text anywhere, even in a value."""

MAX_RELEASE_NAME = 53
"""Helm's own bound."""

_EXACT = re.compile(r"v?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")


def findings(spec: DeploySpec, workspace: Workspace) -> tuple[Finding, ...]:
    """Return everything in a spec that the safety rules refuse, in the order of the file."""
    found: list[Finding] = []
    for index, chart in enumerate(spec.helm):
        found.extend(_chart(chart, ("spec", "helmConfig", index), workspace))
    for index, resource in enumerate(spec.manifests):
        loc = ("spec", "manifestResources", index, "manifest")
        found.extend(_object(resource.manifest, loc, workspace))
    for index, command in enumerate(spec.commands):
        found.extend(_command(command.cmd, ("spec", "cmdExec", index, "cmd"), spec, workspace))
    return tuple(found)


def exact_version(version: str) -> bool:
    """Tell whether a chart's version is one and no range."""
    return _EXACT.fullmatch(version) is not None


def objects(manifests: Iterable[Mapping[str, Json]], loc: Loc, workspace: Workspace) -> tuple[Finding, ...]:
    """Check the objects of a chart that Overspill has rendered; `loc` is the chart's place, since they have none."""
    found: list[Finding] = []
    for manifest in manifests:
        name = _metadata(manifest).get("name", "")
        what = f"the chart makes {shortened(str(manifest.get('kind', '')))} {shortened(str(name))}"
        found.extend(
            Finding(loc=loc, message=f"{what}: {finding.message}", hint=finding.hint)
            for finding in _object(manifest, (), workspace)
        )
    return tuple(found)


def _chart(chart: HelmConfig, loc: Loc, workspace: Workspace) -> Iterator[Finding]:
    if not workspace.allow_unpinned_charts and not has_expression(chart.version) and not exact_version(chart.version):
        what = f"{shortened(chart.version)!r} is not one version" if chart.version else "the chart has no version"
        yield Finding(loc=(*loc, "version"), message=what, hint="write it out, as in 0.1.7, or set allowUnpinnedCharts")
    name = chart.release_name
    if not has_expression(name) and (not is_name(name) or len(name) > MAX_RELEASE_NAME):
        message = f"{shortened(name)!r} cannot name a release"
        yield Finding(loc=(*loc, "releaseName"), message=message, hint="a-z, 0-9 and dashes, at most 53 characters")
    yield from _namespace(chart.release_namespace, (*loc, "releaseNamespace"), workspace)
    yield from _leaves(chart.values, (*loc, "values"))


def _object(manifest: Mapping[str, Json], loc: Loc, workspace: Workspace) -> Iterator[Finding]:
    kind = group_kind(manifest)
    name = _metadata(manifest).get("name")
    if not _is_text(manifest.get("apiVersion")) or not _is_text(manifest.get("kind")):
        yield Finding(loc=loc, message="the manifest is no Kubernetes object", hint="it needs apiVersion and kind")
        return
    if name is None or name == "":
        yield Finding(loc=(*loc, "metadata"), message="the object has no name", hint="set metadata.name")
    if has_expression(kind):
        return  # what it is going to be is looked at once it is
    if kind.startswith(("kustomize.config.k8s.io/", "/Kustomization")):
        yield Finding(loc=(*loc, "kind"), message="a kustomization is an instruction to the engine, not an object")
    if manifest["kind"] == "List" or (manifest["kind"].endswith("List") and isinstance(manifest.get("items"), list)):
        yield Finding(loc=(*loc, "kind"), message="a List is many objects", hint="give each its own entry")
    if (why := refused(kind)) and kind not in workspace.allowed_kinds:
        hint = f"the workspace's allowedKinds would have to hold {kind}"
        yield Finding(loc=(*loc, "kind"), message=f"{manifest['kind']} {why}, which templates may not", hint=hint)
    if kind == "/Secret" and _has_plain_data(manifest):
        hint = "use SOPS, a SealedSecret, an ExternalSecret, or a Secret that exists there"
        yield Finding(loc=loc, message="a Secret with data may not lie in git", hint=hint)
        return
    if kind == "/Namespace" and _is_text(name):
        yield from _namespace(name, (*loc, "metadata", "name"), workspace)
    elif not cluster_scoped(kind) and (namespace := _metadata(manifest).get("namespace")) is not None:
        yield from _namespace(namespace, (*loc, "metadata", "namespace"), workspace)
    yield from _numbers(manifest, kind, loc)
    yield from _leaves(manifest, loc)


def _numbers(manifest: Mapping[str, Json], kind: str, loc: Loc) -> Iterator[Finding]:
    """Find what is no text where Kubernetes reads nothing else: names, labels, a ConfigMap's data, variables."""
    metadata = _metadata(manifest)
    texts: list[tuple[Loc, Json]] = [(("metadata", "name"), metadata.get("name"))]
    maps: list[tuple[Loc, Json]] = [(("metadata", part), metadata.get(part)) for part in ("labels", "annotations")]
    if kind == "/ConfigMap":
        maps.append((("data",), manifest.get("data")))
    for place, value in maps:
        if isinstance(value, dict):
            texts.extend(((*place, key), item) for key, item in value.items())
    if kind in POD_TEMPLATES:
        texts.extend(_variables(manifest))
    for place, value in texts:
        if isinstance(value, bool | int | float):
            message = f"Kubernetes takes a text here, not {str(value).lower()}"
            yield Finding(loc=(*loc, *place), message=message, hint="quote it, or end the expression with | string")


def _variables(manifest: Mapping[str, Json]) -> Iterator[tuple[Loc, Json]]:
    """Yield the values of the environment variables of a workload's containers."""
    place: Loc = ()
    pod: Json = manifest
    for part in ("spec", "template", "spec"):
        place, pod = (*place, part), pod.get(part)
        if not isinstance(pod, dict):
            return
    for part in ("initContainers", "containers"):
        for index, container in enumerate(_list(pod.get(part))):
            if isinstance(container, dict):
                for number, variable in enumerate(_list(container.get("env"))):
                    if isinstance(variable, dict):
                        yield (*place, part, index, "env", number, "value"), variable.get("value")


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _command(cmd: str, loc: Loc, spec: DeploySpec, workspace: Workspace) -> Iterator[Finding]:
    for word in cmd.split():
        name, equals, value = word.removeprefix("--from-literal=").lstrip("-").partition("=")
        if what := secrets.credential(value.strip("'\"") if equals else word, name if equals else ""):
            yield _leaked(loc, what)
            return
    if SKIP_MARKER in cmd:
        yield Finding(loc=loc, message=_SKIP)
    if has_expression(cmd):
        return
    outcome = commands.read(cmd)
    if refusal := commandjobs.refusal(outcome, workspace.command_jobs, spec.service_account):
        yield Finding(loc=loc, message=refusal.message, hint=refusal.hint)
    elif isinstance(outcome, commands.Makes):
        metadata = _metadata(outcome.manifest)
        named = metadata["name"] if group_kind(outcome.manifest) == "/Namespace" else metadata.get("namespace", "")
        yield from _namespace(named, loc, workspace)
    elif isinstance(outcome, commands.Runs | commands.Checks) and outcome.namespace:
        yield from _namespace(outcome.namespace, loc, workspace)


def _namespace(namespace: Json, loc: Loc, workspace: Workspace) -> Iterator[Finding]:
    """Check a namespace that an object, a release or a command names; an empty one becomes the target namespace."""
    if namespace == "" or (isinstance(namespace, str) and has_expression(namespace)):
        return
    if not isinstance(namespace, str) or not is_name(namespace):
        yield Finding(loc=loc, message=f"{shortened(str(namespace))!r} cannot be the name of a namespace")
    elif workspace.namespaces and namespace not in workspace.namespaces:
        known = ", ".join(workspace.namespaces)
        message = f"{namespace!r} is no namespace of workspace {workspace.name}"
        yield Finding(loc=loc, message=message, hint=f"it has {shortened(known, 200)}")


_SKIP = f"the text {SKIP_MARKER!r} would make Argo CD leave the whole file out"


def _leaves(value: Json, loc: Loc, name: str = "") -> Iterator[Finding]:
    """Look at every text below a value; `name` is what a text that stands here would be called."""
    if isinstance(value, str):
        if SKIP_MARKER in value:
            yield Finding(loc=loc, message=_SKIP)
        if what := secrets.credential(value, name):
            yield _leaked(loc, what)
    elif isinstance(value, dict):
        variable = value.get("name")
        for key, item in value.items():
            if SKIP_MARKER in key:
                yield Finding(loc=(*loc, key), message=_SKIP)
            called = variable if key == "value" and isinstance(variable, str) else key
            yield from _leaves(item, (*loc, key), called)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*loc, index), name)


def _leaked(loc: Loc, what: str) -> Finding:
    hint = "refer to a Secret in the cluster, or write <...> where people fill it in"
    return Finding(loc=loc, message=f"this looks like {what}, which may not lie in git", hint=hint)


def _has_plain_data(manifest: Mapping[str, Json]) -> bool:
    """Tell whether a Secret holds anything that is not encrypted by SOPS."""
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
