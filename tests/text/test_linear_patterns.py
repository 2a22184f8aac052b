"""Every regular expression in the house takes time that grows with the text, whatever a tenant or a cluster writes."""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reconciler.core.validation.custom_resources import custom_kind
from reconciler.core.validation.objects import check_object
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from tests.text.pattern_attacks import SEARCHES, attacks, too_slow

ROOT = Path(__file__).parents[2]
METHODS = SEARCHES | {"match", "fullmatch"}
MADE_WHILE_RUNNING = {
    "reconciler/api/refusal.py": "rows of a table of its own, matched in full",
    "reconciler/adapters/git/remote_errors.py": "rows of a table of its own, tried with it",
    "reconciler/cli/completion.py": "names of fields, which are its own, in files of the person who completes",
    "reconciler/core/commits/messages.py": "an escaped clause, without a loop",
    "reconciler/core/fleet/paths.py": "each segment of a pattern of paths, tried below",
    "reconciler/core/observe/kubernetes/words/sayings.py": "rows of tables of its own, each with its names",
    "reconciler/demo/stage.py": "names of fields in the demo's own files",
}
"""Modules that make patterns of arguments, and of what."""


class Sources:
    """The modules of the product that use `re`, as trees."""

    def __init__(self) -> None:
        texts = {path: path.read_text() for path in sorted((ROOT / "reconciler").rglob("*.py"))}
        self.trees = {path: ast.parse(text) for path, text in texts.items() if "\nimport re\n" in text}
        self.uses: dict[str, set[str]] = {}
        """Methods by the name that a pattern has in a module, and everywhere."""
        for path, text in texts.items():
            if any(f".{method}" in text for method in METHODS):
                self._note(path, self.trees.get(path) or ast.parse(text))

    def _note(self, path: Path, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                value = node.value
                while isinstance(value, ast.Subscript):
                    value = value.value
                if isinstance(value, ast.Name) and value.id != "re":
                    self.uses.setdefault(f"{path}:{value.id}", set()).add(node.attr)
                name = value.id if isinstance(value, ast.Name) else getattr(value, "attr", "")
                self.uses.setdefault(name, set()).add(node.attr)
        for node in nodes:
            if isinstance(node, (ast.For, ast.comprehension)):
                for item in _names(node.target):
                    for whole in _names(node.iter):
                        self.uses.setdefault(f"{path}:{whole}", set()).update(self.uses.get(f"{path}:{item}", ()))

    def methods(self, path: Path, name: str) -> set[str]:
        """Return the methods by which a pattern of a module is used; any of them where that is not to be seen."""
        own = self.uses.get(f"{path}:{name}", set())
        elsewhere = self.uses.get(name, set()) if not name.startswith("_") else set()
        return own | elsewhere or {"search"}


def _names(node: ast.expr) -> list[str]:
    return [below.id for below in ast.walk(node) if isinstance(below, ast.Name)]


def _patterns(value: object, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a value of a module."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 4 and isinstance(value, (tuple, list, set, frozenset)):
        for item in value:
            yield from _patterns(item, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for key, item in value.items():
            yield from _patterns(key, depth + 1)
            yield from _patterns(item, depth + 1)


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of functions of `re` that take a pattern."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in METHODS | {"compile"}
        ):
            yield node


Found = dict[tuple[Any, int], tuple[str, set[str]]]


@cache
def found_patterns() -> tuple[Found, list[str]]:
    """Return patterns with the place and the methods of each, and the places of those made of arguments."""
    sources = Sources()
    found: Found = {}
    made: list[str] = []

    def note(pattern: re.Pattern[Any], place: str, methods: set[str]) -> None:
        found.setdefault((pattern.pattern, pattern.flags), (place, set()))[1].update(methods)

    for path, tree in sources.trees.items():
        place = str(path.relative_to(ROOT))
        module = importlib.import_module(place.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        for name, value in vars(module).items():
            if not name.startswith("__"):
                for pattern in _patterns(value):
                    note(pattern, f"{place}: {name}", sources.methods(path, name))
        for call in _calls(tree):
            try:
                written = eval(compile(ast.Expression(call.args[0]), place, "eval"), vars(module))
            except NameError:  # an argument, or a variable of a function
                made.append(place)
                continue
            function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if function != "compile":
                note(re.compile(written), f"{place}:{call.lineno}", {function})
    return found, made


@pytest.fixture(scope="module")
def found() -> tuple[Found, list[str]]:
    return found_patterns()


@pytest.mark.exhaustive(one_in=None)
def test_all_patterns_are_linear(found: tuple[Found, list[str]]) -> None:
    slow = [
        f"{place}, {'/'.join(sorted(methods))}: {verdict}"
        for (written, flags), (place, methods) in found[0].items()
        if (verdict := _verdict(re.compile(written, flags), frozenset(methods)))
    ]
    assert not slow, "\n".join(slow)
    assert len(found[0]) > 150


def test_patterns_are_made_of_arguments_in_named_modules_alone(found: tuple[Found, list[str]]) -> None:
    assert set(found[1]) == set(MADE_WHILE_RUNNING)


@pytest.mark.parametrize(
    ("written", "method", "linear"),
    [
        (r"\w*foo", "search", False),
        (r"\w*foo", "fullmatch", True),
        (r"(?:a|aa)+b", "match", False),
        (r"sk-(?=[a-z-]*[A-Z])", "search", False),
        (r"sk-(?=[a-z-]{0,64}+[A-Z])", "search", True),
        (r"\s*(\d+)\s*(m|)\s*", "fullmatch", False),
        (r"<[^<>]*>", "search", True),
        (r"\{\{.*?\}\}", "search", False),
    ],
)
def test_attacks_tell_linear_patterns_from_others(written: str, method: str, linear: bool) -> None:
    assert (not _verdict(re.compile(written), frozenset({method}))) is linear


def _verdict(pattern: re.Pattern[Any], methods: frozenset[str]) -> str:
    return next((verdict for unit in attacks(pattern) if (verdict := too_slow(pattern, methods, unit))), "")


def test_patterns_of_a_definition_are_never_tried_on_what_tenants_write() -> None:
    spec = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^(a+)+$"}}}
    outline = {"type": "object", "properties": {"spec": spec, "tags": {"type": "object", "additionalProperties": spec}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "example.com",
            "names": {"kind": "Model", "plural": "models"},
            "versions": [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": outline}}],
        },
    }
    kind, findings = custom_kind(definition)
    assert kind is not None
    assert findings == ()
    text = "a" * 60 + "!"  # a search for it would take 2^60 steps
    written = {"apiVersion": "example.com/v1", "kind": "Model", "metadata": {"name": "a"}, "spec": {"name": text}}
    manifest = {**written, "tags": {"a": {"name": text}}, "metadata": {"name": "a"}}
    schemas = ObjectSchemas(custom={kind.name: kind})
    assert check_object(manifest, (), schemas, NO_KINDS, rendered=True) == ()
    wrong = {**manifest, "spec": {"name": 7}}
    assert len(check_object(wrong, (), schemas, NO_KINDS, rendered=True)) == 1, "the rest of the schema is held"


@pytest.mark.parametrize("text", ["a" * 100_000, "ab" * 50_000 + "!"])
def test_globs_of_the_fleet_take_linear_time(text: str) -> None:
    began = time.thread_time()
    assert not fnmatchcase(text, "*a" * 30 + "*c")
    assert time.thread_time() - began < 5, "a walk back from each star would take a day"
