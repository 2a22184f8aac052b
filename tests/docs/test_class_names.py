"""One name for each idea: no class of the package is called as another one is."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.docs.test_reasons import CHECKOUT

CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path in sorted((CHECKOUT / "reconciler").rglob("*.py")):
        for name in CLASS.findall(path.read_text()):
            places[name].append(path.name)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
