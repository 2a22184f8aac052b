"""The tables of docs/reference/kinds.md, from the kinds that are built in; `reference_tables` writes them."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator

from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.model.kubernetes.workload_kind import Count, Mark, Path, PodTemplate, WorkloadKind


def kind_table(name: str) -> str:
    """Write a table of the page, or its list of numbers, as Markdown."""
    match name:
        case "built in":
            return "| kind | API group | versions; checked against | group |\n|---|---|---|---|\n" + "".join(rows())
        case "labels":
            return "| kind | its pods have |\n|---|---|\n" + "".join(labels())
        case "numbers":
            return f"\n{''.join(items())}\n"
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


def labels() -> Iterator[str]:
    """Yield the rows of the table of labels, one for each by which pods of a kind are known."""
    yield from (f"| {unique_name(kind)} | {label(mark)} |\n" for kind in BUILT_IN.values() for mark in kind.marks)


def items() -> Iterator[str]:
    """Yield the items of the list of numbers; kinds with their numbers in the same places are one item."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for kind in BUILT_IN.values():
        alike.setdefault((*numbers(kind),), []).append(unique_name(kind))
    for lines, names in alike.items():
        yield wrapped(f"- {', '.join(names)}", "  ")
        yield from (wrapped(f"  - {line}", "    ") for line in lines)


def unique_name(kind: WorkloadKind) -> str:
    """Name a kind, with its group where several groups have one of this name."""
    groups = Counter(each.kind for each in BUILT_IN.values())
    return f"{kind.kind} of {kind.group}" if groups[kind.kind] > 1 else kind.kind


def wrapped(line: str, indent: str) -> str:
    """Break an item of a list into lines that fit on a screen."""
    text = textwrap.fill(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return f"{text}\n"


def numbers(kind: WorkloadKind) -> Iterator[str]:
    """Yield the places of a kind's replicas, of its pods, and of the number that a group needs."""
    if kind.replicas:
        yield f"replicas: {', '.join(map(code, kind.replicas))}"
    if kind.counted:
        yield from (f"pods: {template(each)}" for each in kind.templates)
    else:
        yield "pods: not counted"
    if kind.together:
        yield f"needed at once: {least(kind)}"


def code(path: Path) -> str:
    """Write a path as code."""
    return f"`{'.'.join(path)}`"


def template(pods: PodTemplate) -> str:
    """Write where pods are described, and what they are counted by."""
    paths = [code(path) for path in (pods.spec, pods.instead, pods.reference, pods.resources) if path]
    return " or ".join(paths) + "".join(f" x {factor(count)}" for count in pods.counts)


def factor(count: Count) -> str:
    """Write one number that pods are multiplied by."""
    paths = [f"{code(count.path)} / {code(count.over)}" if count.over else code(count.path)]
    paths += [code(count.instead)] if count.instead else []
    text = " or ".join(paths)
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
