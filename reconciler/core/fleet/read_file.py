"""A file of the fleet repository, from bytes to objects.

The result depends on neither the path nor other files, so that it can be cached by blob id.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice

from pydantic import ValidationError

from reconciler.bulkhead import Seam, attempt
from reconciler.core.expressions.dialect import bounded_expressions
from reconciler.core.expressions.render import TOO_MANY_TOKENS
from reconciler.core.fleet.assemble import assemble
from reconciler.core.fleet.file import (
    AbsentLimits,
    AbsentSpread,
    Declared,
    ParsedFile,
    Value,
    describe_foreign,
    describe_opaque,
    pointed_content,
)
from reconciler.core.fleet.kruise_whitelist import CONFIGURATION, is_whitelist, whitelist
from reconciler.core.fleet.spread import rules
from reconciler.core.fleet.template import template_draft
from reconciler.core.safety import credentials
from reconciler.core.schema import KINDS, KindSupport, Strict, kind_verdict, validation_findings, yaml
from reconciler.core.schema.egs.gpr import GprFile, GprTemplateFile
from reconciler.core.schema.egs.gpr_binding import BindingFile, WorkspacePolicyFile
from reconciler.core.schema.egs.ignored_fields import warn_ignored_fields
from reconciler.core.schema.egs.placement import PlacementFile
from reconciler.core.schema.egs.request import placement_draft, reservation_draft
from reconciler.core.schema.egs.template import WorkloadTemplateFile
from reconciler.core.schema.fleet import ClusterFile, FleetFile
from reconciler.core.schema.notification import NotificationFile
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.workloadkind import WorkloadKindFile
from reconciler.core.schema.workloadspread import WorkloadSpreadFile
from reconciler.core.schema.workspace import WorkspaceFile
from reconciler.core.schema.yaml import MAX_BYTES, Document
from reconciler.core.validation import custom_resources
from reconciler.core.workloads.paths import at
from reconciler.errors import Bug, InvalidInput, Problem, Severity
from reconciler.model.kubernetes.object_schema import CustomKind
from reconciler.model.workload import Json
from reconciler.text.file_names import may_hold_objects
from reconciler.text.findings import Finding, Loc, dotted, told
from reconciler.text.spelling import bounded_suggestions

__all__ = ["ParsedFile", "assemble", "is_read", "parse_file"]

_GROUPS = rb"overspill\.dev|kubeslice\.io|apps\.kruise\.io"
_KINDS = "|".join(sorted(KINDS)).encode()
_MENTIONED = re.compile(
    rb"%b|\b(?:%b|%b|%b)\b" % (_GROUPS, _KINDS, CONFIGURATION.encode(), custom_resources.KIND.encode())
)
_DECLARED = re.compile(
    rb"""(?:^|[\s{,"'])apiVersion["']?\s*:\s*["']?[\w.-]*(?:%b)|(?:^|[\s{,"'])kind["']?\s*:\s*["']?(?:%b)\b"""
    % (_GROUPS, _KINDS)
)
_NAMED = re.compile(
    rb"""(?:^|[\s{,"'])(?:name|kind)["']?[ \t]*:[ \t]*["']?([A-Za-z0-9][-A-Za-z0-9]{0,62})(?![-\w.])""", re.MULTILINE
)
_NAMESPACE = re.compile(
    rb"""(?:^|[\s{,"'])namespace["']?[ \t]*:[ \t]*["']?([a-z0-9][-a-z0-9]{0,62})(?![-\w.])""", re.MULTILINE
)
_MOST_NAMES = 10_000
"""Names of a broken file that are kept; a larger file has graver problems than missing references."""
_BLANK = re.compile(rb"(?:\s|#[^\n]*(?:\n|$)|---(?=\s|$))*+")
"""White space, comments, and markers of empty documents."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def is_read(path: str) -> bool:
    """Return whether a file may hold objects: YAML or JSON, and no directory of its path begins with a dot."""
    return may_hold_objects(path) and not is_hidden(path.rpartition("/")[0])


def is_hidden(path: str) -> bool:
    """Return whether a part of a path begins with a dot."""
    return any(part.startswith(".") for part in path.split("/"))


def parse_file(data: bytes) -> ParsedFile:
    """Read all objects of one file, with every problem.

    A file that mentions none of our groups and kinds is not parsed. A broken file that only mentions them is not ours,
    and its syntax is not checked. An exception that nothing foresaw is a problem of the file.
    """
    file = attempt(Seam.FILE, "a file of the fleet repository", partial(_parse, data))
    return _unread((file.problem(""),), data) if isinstance(file, Bug) else file


@bounded_suggestions()
@bounded_expressions()
def _parse(data: bytes) -> ParsedFile:
    if data.startswith(_UTF16):
        if _DECLARED.search(_without_nulls(data)) is None:
            return _foreign(data)
    elif _MENTIONED.search(data) is None:
        return _foreign(data)
    try:
        documents = yaml.parse(data, "")
    except InvalidInput as error:
        declares_kinds = data.startswith(_UTF16) or _DECLARED.search(data) is not None
        return _unread(error.problems, data) if declares_kinds else _foreign(data)
    objects: list[Declared] = []
    problems: list[Problem] = []
    spreads: list[AbsentSpread] = []
    limits: list[AbsentLimits] = []
    foreign: list[str] = []
    for document in documents:
        rest = replace(document, value=None)
        declared = False
        foreign += () if isinstance(document.value, Mapping) else (_fingerprint(document.value),)
        for root, value in _candidates(document):
            spreads += _declared_spreads(value)
            limits += _declared_limits(value)
            result = attempt(Seam.OBJECT, dotted(root) or "an object", partial(_read_object, value))
            if isinstance(result, Bug):
                problems.append(result.problem("", rest.line(root)))
                declared = True
                continue
            made, findings = result
            for finding in findings:
                below = replace(finding, loc=(*root, *finding.loc))
                problems.append(below.problem(path="", line=rest.line(below.loc)))
            declared = declared or bool(findings) or not (made is None or isinstance(made, CustomKind))
            foreign += (_fingerprint(value),) if made is None and not findings else ()
            if made is not None:
                objects.append(Declared(value=made, document=rest, root=root))
        problems += document.warnings if declared else ()
    file = ParsedFile(objects=tuple(objects), problems=_sorted_problems(problems), foreign=tuple(foreign))
    if not (objects or problems):
        file = replace(file, content=describe_foreign(data), blank=not documents)
    return _with_mentioned(replace(file, spreads=tuple(spreads), limits=tuple(limits)), data)


def _foreign(data: bytes) -> ParsedFile:
    """Return the content of a file that holds nothing of ours."""
    blank = _BLANK.fullmatch(data) is not None
    content = "is empty" if blank else describe_foreign(data)
    return ParsedFile(
        blank=blank, content=content, pointer_to=pointed_content(data), readable=not describe_opaque(data)
    )


def _fingerprint(value: Json) -> str:
    """Return what tells a foreign document from others: its kind and name, or a digest of one without."""
    if isinstance(value, Mapping):
        kind, name = at(value, ("kind",)), at(value, ("metadata", "name"))
        if isinstance(kind, str) and isinstance(name, str):
            return json.dumps([value.get("apiVersion"), kind, at(value, ("metadata", "namespace")), name])
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _declared_spreads(value: Mapping[str, Json]) -> Iterator[AbsentSpread]:
    """Yield the target of a WorkloadSpread, as far as it is readable."""
    if value.get("kind") == "WorkloadSpread":
        namespace, name = at(value, ("metadata", "namespace")), at(value, ("spec", "targetRef", "name"))
        yield AbsentSpread(
            namespace=namespace if isinstance(namespace, str) and namespace else "default",
            name=name if isinstance(name, str) else "",
        )


def _declared_limits(value: Mapping[str, Json]) -> Iterator[AbsentLimits]:
    """Yield the workspace of a WorkspacePolicy, as far as it is readable."""
    if value.get("kind") == "WorkspacePolicy":
        for field_path in (("spec", "sliceRef", "name"), ("metadata", "name")):
            if isinstance(name := at(value, field_path), str):
                yield AbsentLimits(workspace=name)
                return


def _unread(problems: tuple[Problem, ...], data: bytes) -> ParsedFile:
    """Return the content of a file of which no object can be read, with what it seems to declare."""
    file = ParsedFile(problems=problems, spreads=_named_spreads(data), limits=_named_limits(data))
    return _with_mentioned(file, data)


def _named_limits(data: bytes) -> tuple[AbsentLimits, ...]:
    """Find the possible workspaces of the WorkspacePolicies of a file that is no YAML: any of its names."""
    text = _without_nulls(data[:MAX_BYTES])
    names = dict.fromkeys(match[1].decode() for match in islice(_NAMED.finditer(text), _MOST_NAMES))
    return tuple(AbsentLimits(workspace=name) for name in names) if "WorkspacePolicy" in names else ()


def _named_spreads(data: bytes) -> tuple[AbsentSpread, ...]:
    """Find the possible targets of the WorkloadSpreads of a file that is no YAML: any of its names, in its namespaces.

    Without a namespace in the file nothing is known to be of its author, so that only the default one counts.
    """
    text = _without_nulls(data[:MAX_BYTES])
    names = [match[1].decode() for match in islice(_NAMED.finditer(text), _MOST_NAMES)]
    if "WorkloadSpread" not in names:
        return ()
    namespaces = {match[1].decode() for match in _NAMESPACE.finditer(text)} or {"default"}
    return tuple(
        AbsentSpread(namespace=namespace, name=name)
        for namespace in sorted(namespaces)
        for name in dict.fromkeys(names)
    )[:_MOST_NAMES]


def _with_mentioned(file: ParsedFile, data: bytes) -> ParsedFile:
    """Return the content of a file; of a broken one also the names that it would have declared."""
    if not file.broken:
        return file
    matches = islice(_NAMED.finditer(_without_nulls(data[:MAX_BYTES])), _MOST_NAMES)
    return replace(file, mentioned=frozenset(match[1].decode() for match in matches))


def _without_nulls(data: bytes) -> bytes:
    """Drop the null bytes of UTF-16, so that its words can be searched."""
    return data.replace(b"\0", b"") if data.startswith(_UTF16) else data


def _sorted_problems(problems: list[Problem]) -> tuple[Problem, ...]:
    """Sort the problems of a file by line; of very many of them keep errors before warnings.

    Too many tokens are the file's own problem, and only the first object that has it tells it.
    """
    exhausted = [problem for problem in problems if problem.message == TOO_MANY_TOKENS]
    if len(exhausted) > 1:
        problems = [min(exhausted), *(problem for problem in problems if problem.message != TOO_MANY_TOKENS)]
    return tuple(sorted(told(sorted(problems))))


def _candidates(document: Document) -> Iterator[tuple[Loc, Mapping[str, Json]]]:
    """Yield the mappings of a document that may be objects: itself, or the items of a List as kubectl prints it."""
    value = document.value
    if not isinstance(value, Mapping):
        return
    items = value.get("items")
    if value.get("kind") == "List" and isinstance(items, list):
        yield from ((("items", index), item) for index, item in enumerate(items) if isinstance(item, Mapping))
    else:
        yield (), value


def _read_object(value: Mapping[str, Json]) -> tuple[Value | None, tuple[Finding, ...]]:
    """Read one object; None for foreign, only observed, and broken objects."""
    if is_whitelist(value):
        return whitelist(value)
    if custom_resources.is_definition(value):
        return custom_resources.custom_kind(value)
    verdict = kind_verdict(value.get("apiVersion"), value.get("kind"))
    if verdict.support is KindSupport.WRONG:
        return None, (Finding(loc=(verdict.field,), message=verdict.message, hint=verdict.hint),)
    if verdict.model is None:
        return None, ()
    try:
        file = verdict.model.model_validate(value)
    except ValidationError as error:
        return None, _with_credentials(value, validation_findings(error, verdict.model))
    checked, findings = _checked_value(file)
    return checked, _with_credentials(value, findings)


def _with_credentials(value: Mapping[str, Json], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Add the credentials in an object, in place of findings that repeat what is at their place.

    A finding that refuses the place in its own words stays alone: its hint is the better one.
    """
    leaks = {leak.loc: leak for leak in credentials.check_document(value)}
    kept = tuple(finding for finding in findings if not (finding.loc in leaks and _repeats(finding, value)))
    refused = {finding.loc for finding in kept if finding.severity is Severity.ERROR}
    return (*kept, *(leak for loc, leak in leaks.items() if loc not in refused))


_REPEATED = 6
"""Characters in a row of a value that a message repeats, not by chance."""


def _repeats(finding: Finding, value: Mapping[str, Json]) -> bool:
    """Return whether a finding repeats a part of the text at its place."""
    text, words = at(dict(value), tuple(map(str, finding.loc))), f"{finding.message} {finding.hint}"
    if not isinstance(text, str):
        return True
    return any(text[start : start + _REPEATED] in words for start in range(max(1, len(text) - _REPEATED + 1)))


_AS_READ = (
    FleetFile, ClusterFile, WorkspaceFile, BurstPolicyFile, BindingFile, WorkloadKindFile, NotificationFile,
)  # fmt: skip # a list of words
"""Kinds that are checked by their models alone."""


def _checked_value(file: Strict) -> tuple[Value | None, tuple[Finding, ...]]:
    """Check a file on its own, and keep the values that assembly needs; observations are read elsewhere."""
    if isinstance(file, WorkloadTemplateFile):
        return template_draft(file)
    if isinstance(file, PlacementFile):
        return placement_draft(file)
    if isinstance(file, GprFile):
        return reservation_draft(file)
    if isinstance(file, GprTemplateFile):
        return file, (
            *warn_ignored_fields(file.spec, ("spec",)),
            *warn_ignored_fields(file.spec.template, ("spec", "template")),
        )
    if isinstance(file, WorkspacePolicyFile):
        return file, tuple(warn_ignored_fields(file.spec, ("spec",)))
    if isinstance(file, WorkloadSpreadFile):
        return file, tuple(rules.check_spread(file))
    if isinstance(file, WorkspaceFile) and file.spec.primary_cluster not in file.spec.clusters:
        message = f"{file.spec.primary_cluster} is not among spec.clusters"
        loc: Loc = ("spec", "primaryCluster")
        return file, (Finding(loc=loc, message=message, hint="try adding it there", severity=Severity.WARNING),)
    if isinstance(file, _AS_READ):
        return file, ()
    return None, ()
