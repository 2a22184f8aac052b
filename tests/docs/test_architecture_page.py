"""The page on architecture names modules, types and rooms that exist."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "background" / "architecture.md").read_text()
CODE = ROOT / "reconciler"
PATHS = sorted(
    set(re.findall(r"`((?:reconciler|core|decide|model|cli|adapters|daemon|api)/[\w/.]+|ports\.py|app\.py)`", PAGE))
)


def _resolved(path: str) -> Path:
    base = CODE / "core" if path.startswith("decide/") else ROOT if path.startswith("reconciler/") else CODE
    return base / path


def _table(heading: str) -> list[list[str]]:
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if not set(row[0]) <= set("-| ")][1:]


@pytest.mark.parametrize("path", PATHS)
def test_every_path_of_the_page_exists(path: str) -> None:
    assert _resolved(path).exists()


def test_every_room_is_on_the_page_in_the_order_of_its_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == ["reconciler.core"])
    rooms = [room.strip() for layer in layers for room in layer.split("|")]
    listed = re.findall(
        r"^\| `(\w+)` \|", PAGE.split("## The rooms of the core", 1)[1].split("## One burst", 1)[0], re.MULTILINE
    )
    assert listed == rooms


@pytest.mark.parametrize("row", _table("One burst, followed"), ids=lambda row: row[0])
def test_every_value_of_the_walk_is_named_in_the_module_of_its_stop(row: list[str]) -> None:
    _, values, places = row
    names = [name for name in re.findall(r"`(\w+)`", values) if name[0].isupper()]
    paths = [_resolved(path) for path in re.findall(r"`([\w/.]+)`", places)]
    files = [file for path in paths for file in ([path] if path.suffix else sorted(path.rglob("*.py")))]
    words = {node.id for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}
    words |= {
        node.name for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)
    }
    assert names
    assert set(names) <= words
