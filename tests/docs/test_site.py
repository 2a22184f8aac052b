"""mkdocs.yml lists every page and loads nothing from other hosts, and docs/site_pages.py writes links for the site.

``make site`` itself needs a package index, and fails on every link that leads nowhere.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.docs.test_links import USER_PAGES

CHECKOUT = Path(__file__).parents[2]
SITE = (CHECKOUT / "mkdocs.yml").read_text()


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", CHECKOUT / "docs" / "site_pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = re.findall(r"[\w/-]+\.md$", yaml.safe_dump(yaml.safe_load(SITE)["nav"]), re.MULTILINE)
    assert {page.relative_to(CHECKOUT / "docs").as_posix() for page in USER_PAGES} <= {*listed}


def test_the_site_loads_nothing_from_other_hosts() -> None:
    assert "://" not in SITE
    assert yaml.safe_load(SITE)["theme"]["font"] is False
    assert "custom_fences" not in SITE, "the program that draws mermaid comes from another host"


@pytest.mark.parametrize(
    ("text", "page", "expected"),
    [
        ("[a](docs/how-to/lab.md#replay)", "README.md", "[a](how-to/lab.md#replay)"),
        ("[a](../../README.md#install)", "docs/how-to/lab.md", "[a](../start.md#install)"),
        ("[a](../../Makefile)", "docs/how-to/lab.md", "[a](../Makefile)"),
        ("[a](../../repo-layout)", "docs/how-to/lab.md", "[a](../repo-layout/README.md)"),
        ("![a](docs/pictures/demo.svg)", "README.md", "![a](pictures/demo.svg)"),
        ("[a](../../tests)", "docs/how-to/lab.md", "a"),
        ("[`a`](lab.md)", "docs/how-to/access.md", "[`a`](lab.md)"),
        ("- a\n  - b\n", "README.md", "- a\n    - b\n"),
        ("```sh run\n[a](tests)\n```", "README.md", "```sh\n[a](tests)\n```"),
    ],
)
def test_text_is_written_as_the_site_reads_it(hook: ModuleType, text: str, page: str, expected: str) -> None:
    assert hook.site_text(text, page) == expected
