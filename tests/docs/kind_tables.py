"""The tables of docs/reference/kinds.md, from the kinds that are built in; `reference_tables` writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase

from reconciler.core.validation.admission.table import PROJECTS
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.kubernetes.workload_kind import Count, EndStatus, Mark, Path, PodTemplate, WorkloadKind


def kind_table(name: str) -> str:
    """Write a table of the page, as Markdown."""
    match name:
        case "built in":
            return "| kind | API group | versions; checked against | group |\n|---|---|---|---|\n" + "".join(rows())
        case "labels":
            return "| kind | its pods have |\n|---|---|\n" + "".join(labels())
        case "numbers":
            head = "| kind | template of its pods | how many of them |\n|---|---|---|\n"
            return head + "".join(numbers())
        case "minimums":
            return "| kind | pods of a group that are enough |\n|---|---|\n" + "".join(minimums())
        case "ends":
            return "| kind | complete by | failed by |\n|---|---|---|\n" + "".join(ends())
        case "webhooks":
            return "| project, read at | refuses a new object for |\n|---|---|\n" + "".join(webhooks())
        case _:
            raise ValueError(f"no table of kinds is called {name!r}")


def rows() -> Iterator[str]:
    """Yield the rows of the first table; kinds that are alike in all but their names are one row."""
    alike: dict[str, list[str]] = {}
    for kind in BUILT_IN.values():
        together = kind.together.called if kind.together else "none"
        cells = f"{kind.group or '(core)'} | {', '.join(kind.versions)}; {kind.checked} | {together}"
        alike.setdefault(cells, []).append(kind.kind)
    yield from (f"| {', '.join(names)} | {cells} |\n" for cells, names in alike.items())


def webhooks() -> Iterator[str]:
    """Yield a row for each rule of a webhook, with the project in the first of its rows."""
    for project in PROJECTS:
        for number, rule in enumerate(project.rules):
            first = "" if number else f" {project.name} {project.read}"
            since = f" (from {rule.since} on)" if rule.since else ""
            yield f"|{first} | {rule.refuses}{since} |\n"


def labels() -> Iterator[str]:
    """Yield the rows of the table of labels, one for each by which pods of a kind are known."""
    yield from (f"| {unique_name(kind)} | {label(mark)} |\n" for kind in BUILT_IN.values() for mark in kind.marks)


def numbers() -> Iterator[str]:
    """Yield a row for each template of pods; kinds with the same templates are named together, in the first row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for kind in BUILT_IN.values():
        made = (f"{template(pods)} | {product(pods, kind.replicas)}" for pods in kind.templates)
        alike.setdefault((*made,) if kind.counted else ("not counted |",), []).append(unique_name(kind))
    for cells, names in alike.items():
        for first, cell in zip((", ".join(names), *[""] * len(cells)), cells, strict=False):
            yield f"| {first} | {cell} |\n".replace("|  |", "| |")
    yield from (
        f"| {unique_name(kind)} | those of {code(kind.wraps)} | as many as these make |\n"
        for kind in BUILT_IN.values()
        if kind.wraps
    )


def ends() -> Iterator[str]:
    """Yield a row for each way in which a status says that a run is over."""
    alike: dict[str, list[str]] = {}
    for kind in BUILT_IN.values():
        if kind.end is not None:
            cells = f"{_said(kind.end, kind.end.complete)} | {_said(kind.end, kind.end.failed)}"
            if kind.end.spoiled is not None:
                field, values = kind.end.spoiled
                cells += f", and by {code(field)} {' or '.join(f'`{value}`' for value in values)}"
            alike.setdefault(cells, []).append(unique_name(kind))
    yield from (f"| {', '.join(names)} | {cells} |\n" for cells, names in alike.items())


def _said(end: EndStatus, words: tuple[str, ...]) -> str:
    listed = ", ".join(f"`{word}`" for word in words)
    return f"{code(end.word)} {listed}" if end.word else f"condition {listed}"


def minimums() -> Iterator[str]:
    """Yield a row for each kind whose groups may run with fewer pods than all."""
    yield from (
        f"| {unique_name(kind)} | {words} |\n"
        for kind in BUILT_IN.values()
        if kind.together and (words := least(kind)) != "all"
    )


def unique_name(kind: WorkloadKind) -> str:
    """Name a kind, with its group where several groups have one of this name."""
    groups = Counter(each.kind for each in BUILT_IN.values())
    return f"{kind.kind} of {kind.group}" if groups[kind.kind] > 1 else kind.kind


def code(path: Path) -> str:
    """Write a path as code."""
    return f"`{'.'.join(path)}`"


def template(pods: PodTemplate) -> str:
    """Write where pods are described."""
    return " or ".join(code(path) for path in (pods.spec, pods.instead, pods.reference, pods.resources) if path)


def product(pods: PodTemplate, replicas: tuple[Path, ...]) -> str:
    """Write the numbers whose product is the number of a template's pods, those of the replicas in bold."""
    return " x ".join(factor(count, replicas) for count in pods.counts) or "1"


def factor(count: Count, replicas: tuple[Path, ...]) -> str:
    """Write one number that pods are multiplied by."""
    paths = [f"{code(count.path)} / {code(count.over)}" if count.over else code(count.path)]
    paths += [code(count.instead)] if count.instead else []
    text = " or ".join(paths)
    if any(fnmatchcase(".".join(count.path), ".".join(path)) for path in replicas):
        text = f"**{text}**"
    return f"({text} - {count.less})" if count.less else text


def least(kind: WorkloadKind) -> str:
    """Write how many pods of a group have to be there."""
    assert kind.together
    if kind.together.eager is not None:
        path, value = kind.together.eager
        return f"all; 1 where {code(path)} is `{value}`"
    roles = (count.enough for pods in kind.templates for count in pods.counts)
    paths = dict.fromkeys(path for path in (kind.together.gang, *roles) if path)
    counts = [count for pods in kind.templates for count in pods.counts]
    elastic = "".join(
        f"; where {code(count.elastic)} is `true`, of workers {code(count.least)}" for count in counts if count.elastic
    )
    return f"{' and '.join(map(code, paths))}, else all{elastic}" if paths else f"all{elastic}"


def label(mark: Mark) -> str:
    """Write a label by which pods are known."""
    beside = "".join(f" beside `{name}: {value}`" for name, value in mark.beside)
    return f"`{mark.label}`{beside}{': the name, a dash and five characters' if mark.made_up else ''}"
