"""All that an engine is lies behind its interface."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from reconciler.cli.commands import bootstrap
from reconciler.core.engines import BOOTSTRAPPED, ENGINES, PARTS, RESERVED_PLACEMENT_NAMES, WEBHOOKS, Engine
from reconciler.environment import VARIABLES
from reconciler.model.policy import EngineName, Fleet
from tests.builders.deploy_specs import PLACEMENT

SOURCE = Path(__file__).parents[2] / "reconciler"
NAMES = {name.value for name in EngineName} | {name.name for name in EngineName}
NAMED = re.compile('EngineName|"(?:' + "|".join(NAMES) + ')"')


def compared(tree: ast.AST) -> list[int]:
    """Return the lines on which an engine's name is compared: as ``EngineName.X``, or as a text."""
    lines = []
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        names = [part.attr for part in parts if isinstance(part, ast.Attribute) and "EngineName" in ast.unparse(part)]
        names += [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        lines += [part.lineno for part in parts if NAMES.intersection(names)]
    return lines


def test_no_module_outside_of_the_engines_compares_their_names() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if "engines" not in path.parts and path.parts[-2] != "demo"]
    texts = {path: text for path in modules if NAMED.search(text := path.read_text())}
    assert texts
    wrong = [f"{path}:{line}" for path, text in texts.items() for line in compared(ast.parse(text))]
    assert wrong == []


def test_every_name_has_its_engine() -> None:
    assert {name: engine.name for name, engine in ENGINES.items()} == {name: name for name in EngineName}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
def test_marker_lies_in_the_engines_directory_or_in_that_of_the_placement(engine: Engine) -> None:
    directory, _, rest = engine.marker_path(PLACEMENT).partition("/")
    assert directory in {engine.directory, PLACEMENT.name}
    assert directory in RESERVED_PLACEMENT_NAMES or rest.partition("/")[0] in PARTS


@pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
def test_sources_of_the_same_objects_are_equal(engine: Engine) -> None:
    fleet, cluster = Fleet(), PLACEMENT.cluster
    assert engine.cluster_reports(fleet, cluster) == engine.cluster_reports(fleet, cluster)
    assert engine.control_plane(fleet) == engine.control_plane(fleet)


def test_example_of_a_webhook_is_one_of_its_engine() -> None:
    assert all(webhook.example.startswith(f"{name}=https://") for name, webhook in WEBHOOKS.items())


def test_command_line_names_the_engines_of_the_register() -> None:
    secrets = {f"NOTIFY_SECRET_{name.upper()}{suffix}" for name in WEBHOOKS for suffix in ("", "_FILE")}
    assert bootstrap.BOOTSTRAPPED == BOOTSTRAPPED
    assert {name for name in VARIABLES if name.startswith("NOTIFY_SECRET_")} == {*secrets, "NOTIFY_SECRET_FILE"}
    assert all(f"{name}=URL" in VARIABLES["NOTIFY"] for name in WEBHOOKS)
