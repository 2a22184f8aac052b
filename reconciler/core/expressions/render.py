"""Jinja in the string leaves of a template: checked when the file is loaded, rendered for one placement.

YAML is parsed first and only string leaves are rendered, so no value can add a key or an object. Expressions are read
in Helm values, release names and release namespaces, manifests and commands. A leaf that is exactly one
``{{ expression }}`` keeps the type of its value: ``replicas: "{{ replicas }}"`` deploys the number 3. Anywhere else in
a text a value is written as YAML writes it (``true``, ``3``; lists and mappings as JSON).

The dialect is described in `dialect`, its limits in `sandbox`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jinja2 import TemplateError

from reconciler.core.expressions import dialect, sandbox
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.expressions.work import EvaluationBudget
from reconciler.errors import InvalidInput, Severity
from reconciler.model.bounds import FILE_EXPRESSIONS
from reconciler.model.placement import Placement
from reconciler.model.policy import Cluster, Workspace
from reconciler.model.workload import Command, DeploySpec, HelmConfig, Json, ManifestResource, WorkloadTemplate
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import bounded_suggestions
from reconciler.text.timestamps import format_time

MAX_TEXT = 131_072
"""Characters of all texts of one spec that have an expression; parsing takes a second for a few hundred thousand."""

MAX_EXPRESSIONS = 1_000
"""Different texts of one spec that have an expression; compiling each takes half a millisecond at least."""

TOO_MANY_TOKENS = f"the expressions of the file have over {FILE_EXPRESSIONS}"
"""The finding of each object of a file from the one on at which they are too many."""

_READ = "they are in values, releaseName, releaseNamespace, manifest and cmd"

FAILURES = (
    TemplateError,
    ArithmeticError,
    AssertionError,  # Jinja's own checks of filter arguments
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors of an expression that passed every check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Values that the expressions of one rendering read."""

    replicas: int
    cluster: Cluster
    placement: Placement
    workspace: Workspace
    template: WorkloadTemplate

    def values(self) -> Mapping[str, Any]:
        """Return the context by the names of `dialect.CONTEXT`."""
        placement = self.placement
        return {
            "replicas": self.replicas,
            "cluster": {"name": str(self.cluster.name), "labels": dict(self.cluster.labels)},
            "placement": {
                "name": str(placement.name),
                "namespace": placement.namespace,
                "subset": placement.subset,
                "expiresAt": format_time(placement.expires_at),
                "createdAt": format_time(placement.created_at),
            },
            "workspace": {"name": str(self.workspace.name), "primaryCluster": str(self.workspace.primary)},
            "template": {"name": str(self.template.name), "namespace": self.template.namespace},
        }


def check_expressions(spec: DeploySpec) -> tuple[Finding, ...]:
    """Check expressions without rendering: syntax, unknown names, forbidden constructs.

    An expression in a field that is not rendered (a chart, a version) is an error too; in a key, where braces may be
    meant literally, it is a warning.
    """
    leaves = list(_leaves(spec))
    if sum(len(text) for _, text in leaves) > MAX_TEXT:
        return (Finding(loc=("spec",), message=f"the texts that have expressions hold over {MAX_TEXT:,} characters"),)
    different = {text for _, text in leaves}
    if len(different) > MAX_EXPRESSIONS:
        return (Finding(loc=("spec",), message=f"over {MAX_EXPRESSIONS:,} different texts have expressions"),)
    if dialect.too_many_tokens(different):
        return (Finding(loc=("spec",), message=TOO_MANY_TOKENS, hint="try shorter ones, or several files"),)
    findings = [
        Finding(loc=loc, message=fault.message, hint=fault.hint)
        for loc, text in leaves
        for fault in dialect.read_expression(text).faults
    ]
    findings += [
        Finding(loc=loc, message="expressions are not read here", hint=_READ)
        for loc, text in _literal_fields(spec)
        if has_expression(text)
    ]
    findings += [
        Finding(loc=loc, message="expressions are not read in keys", severity=Severity.WARNING)
        for root, value in _documents_with_expressions(spec)
        for loc, key in _keys(root, value)
        if has_expression(key)
    ]
    return tuple(findings)


def reads_variable(spec: DeploySpec, name: str) -> bool:
    """Return whether any expression of a spec reads a name of the context."""
    return any(name in dialect.read_expression(text).names for _, text in _leaves(spec))


@bounded_suggestions()
def render(spec: DeploySpec, context: Context, budget: EvaluationBudget | None = None) -> DeploySpec:
    """Render every expression of a spec, out of a fresh budget or one that is given.

    Parts without any are the same objects in the result.
    Raises InvalidInput with one problem for each leaf that fails, at the template's path and line.
    """
    renderer = _Renderer(context, budget or EvaluationBudget())
    rendered = replace(
        spec,
        helm=tuple(renderer.chart(chart, ("spec", "helmConfig", index)) for index, chart in enumerate(spec.helm)),
        manifests=tuple(
            renderer.manifest(manifest, ("spec", "manifestResources", index))
            for index, manifest in enumerate(spec.manifests)
        ),
        commands=tuple(
            renderer.command(command, ("spec", "cmdExec", index)) for index, command in enumerate(spec.commands)
        ),
    )
    if renderer.found:
        template = context.template
        raise InvalidInput(
            problems=tuple(finding.problem(path=template.path, line=template.line) for finding in renderer.found)
        )
    return rendered


class _Renderer:
    """Renders the leaves of one spec with one budget, and collects what fails."""

    def __init__(self, context: Context, budget: EvaluationBudget) -> None:
        self.found: list[Finding] = []
        self._context = context
        self._budget = budget
        self._variables: dict[str, Any] | None = None  # most specs have few expressions, many have none

    def chart(self, chart: HelmConfig, loc: Loc) -> HelmConfig:
        name = self._text(chart.release_name, (*loc, "releaseName"))
        namespace = self._text(chart.release_namespace, (*loc, "releaseNamespace"))
        values = self._value(chart.values, (*loc, "values"))
        if name is chart.release_name and namespace is chart.release_namespace and values is chart.values:
            return chart
        return replace(chart, release_name=name, release_namespace=namespace, values=values)

    def manifest(self, resource: ManifestResource, loc: Loc) -> ManifestResource:
        manifest = self._value(resource.manifest, (*loc, "manifest"))
        return resource if manifest is resource.manifest else replace(resource, manifest=manifest)

    def command(self, command: Command, loc: Loc) -> Command:
        cmd = self._text(command.cmd, (*loc, "cmd"))
        return command if cmd is command.cmd else replace(command, cmd=cmd)

    def _value(self, value: Json, loc: Loc) -> Json:
        """Render all leaves of a value; return the same object where nothing changed."""
        if isinstance(value, str):
            return self._leaf(value, loc) if has_expression(value) else value
        if isinstance(value, dict):
            return self._items(value, value.items(), loc, lambda: dict(value))
        if isinstance(value, list):
            return self._items(value, enumerate(value), loc, lambda: list(value))
        return value

    def _items(self, value: Json, items: Any, loc: Loc, copy: Callable[[], Json]) -> Json:
        changed: Json = None
        for key, item in items:
            if isinstance(item, str):
                if "{" not in item or not has_expression(item):
                    continue
                made = self._leaf(item, (*loc, key))
            elif isinstance(item, dict | list):
                made = self._value(item, (*loc, key))
            else:
                continue
            if made is not item:
                changed = copy() if changed is None else changed
                changed[key] = made
        return value if changed is None else changed

    def _text(self, text: str, loc: Loc) -> str:
        """Render a leaf that has to be a text; numbers are written out."""
        if not has_expression(text):
            return text
        value = self._leaf(text, loc)
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        self.found.append(Finding(loc=loc, message="the expression gives no text", hint="end it with | string"))
        return text

    def _leaf(self, text: str, loc: Loc) -> Json:
        faults = dialect.read_expression(text).faults
        if faults:  # what has not passed may not run, wherever it came from
            self.found.extend(Finding(loc=loc, message=fault.message, hint=fault.hint) for fault in faults)
            return text
        if self._variables is None:
            self._variables = sandbox.spec_variables(self._context.values(), self._budget)
        try:
            return sandbox.evaluate(text, self._variables)
        except FAILURES as error:
            self.found.append(Finding(loc=loc, message=f"rendering failed: {shortened(str(error), 300)}"))
            return text


def _leaves(spec: DeploySpec) -> Iterator[tuple[Loc, str]]:
    """Yield every rendered leaf with an expression."""
    for root, value in _documents_with_expressions(spec):
        yield from expression_strings(root, value)
    for index, chart in enumerate(spec.helm):
        for name, text in (("releaseName", chart.release_name), ("releaseNamespace", chart.release_namespace)):
            if has_expression(text):
                yield ("spec", "helmConfig", index, name), text
    for index, command in enumerate(spec.commands):
        if has_expression(command.cmd):
            yield ("spec", "cmdExec", index, "cmd"), command.cmd


def _documents(spec: DeploySpec) -> Iterator[tuple[Loc, Json]]:
    """Yield the free-form parts of a spec."""
    for index, chart in enumerate(spec.helm):
        yield ("spec", "helmConfig", index, "values"), chart.values
    for index, resource in enumerate(spec.manifests):
        yield ("spec", "manifestResources", index, "manifest"), resource.manifest


def _documents_with_expressions(spec: DeploySpec) -> Iterator[tuple[Loc, Json]]:
    """Yield the free-form parts that may contain an expression; most have none.

    JSON escapes quotes and control characters alone, which the delimiters of an expression do not contain.
    """
    return ((root, value) for root, value in _documents(spec) if has_expression(json.dumps(value, ensure_ascii=False)))


def _literal_fields(spec: DeploySpec) -> Iterator[tuple[Loc, str]]:
    """Yield texts of fields that are not rendered, in which an expression is a mistake."""
    for index, chart in enumerate(spec.helm):
        for name, text in (
            ("name", chart.name),
            ("chart", chart.chart),
            ("repoName", chart.repo_name),
            ("repoURL", chart.repo_url),
            ("version", chart.version),
        ):
            yield ("spec", "helmConfig", index, name), text
    for index, step in enumerate(spec.steps):
        yield ("spec", "steps", index, "name"), step.name
    yield ("spec", "serviceAccount"), spec.service_account


def expression_strings(loc: Loc, value: Json) -> Iterator[tuple[Loc, str]]:
    """Yield the texts with an expression in a value, each with its place."""
    if isinstance(value, str):
        if has_expression(value):
            yield loc, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from expression_strings((*loc, key), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from expression_strings((*loc, index), item)


def _keys(loc: Loc, value: Json) -> Iterator[tuple[Loc, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield (*loc, key), key
            yield from _keys((*loc, key), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _keys((*loc, index), item)
