"""Pages of the site that are not below docs/, and links as GitHub has them: a hook of MkDocs, used by ``make site``.

README.md and its like link to files of the repository. In the site each Markdown file among these is a page, any other
file lies at its own path, and a link to a folder leads to the README.md in it, or is text.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).parents[1]
DOCS = "docs/"
START = "start.md"
"""README.md in the site, whose own front page is index.md."""
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"^```(\w+) [^\n]*")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_NESTED = re.compile(r"^( +)(?=[-*] |\d+\. )", re.MULTILINE)


def on_config(config: MkDocsConfig) -> None:
    """Name headings as GitHub does."""
    config.mdx_configs["toc"] = {
        **config.mdx_configs.get("toc", {}),
        "slugify": lambda text, _separator: slug(html.unescape(text)),
    }


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the files of the repository that pages link to, and those that these link to."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the tests of this module run without MkDocs

    waiting = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
    waiting += [target for file in files.documentation_pages() for target in targets(DOCS + file.src_uri)]
    while waiting:
        path = waiting.pop()
        if path.startswith(DOCS) or files.get_file_from_path(site_path(path)):
            continue
        files.append(File.generated(config, site_path(path), content=(CHECKOUT / path).read_bytes()))
        if path.endswith(".md"):
            waiting += targets(path)


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the text of a page with links as the site has them."""
    path = page.file.src_uri
    if path == START:
        path = "README.md"
    elif not page.file.generated_by:
        path = DOCS + path
    return site_text(markdown, path)


def targets(path: str) -> Iterator[str]:
    """Yield the files of the repository outside of docs that a page links to."""
    for _, _, link in _LINK.findall(_FENCE.sub("", (CHECKOUT / path).read_text(encoding="utf-8"))):
        target = _file(path, link)
        if target and not target.startswith(DOCS):
            yield target


def site_text(text: str, path: str) -> str:
    """Write the text of a file of the repository as MkDocs reads it: links, nested lists, marks of fences."""
    parts = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += [_prose(text[end : fence.start()], path), _MARK.sub(r"```\1", fence.group())]
        end = fence.end()
    return "".join([*parts, _prose(text[end:], path)])


def _prose(text: str, path: str) -> str:
    text = _NESTED.sub(lambda spaces: spaces[1] * 2, text)
    return _LINK.sub(lambda link: link[1] + _link(link[2], link[3], path), text)


def _link(words: str, link: str, path: str) -> str:
    """Write a link as one between pages of the site; one to a folder without a page is text."""
    if "://" in link or link.startswith("#"):
        return f"[{words}]({link})"
    target = _file(path, link)
    if target is None:
        return words
    here = posixpath.dirname(site_path(path))
    _, mark, anchor = link.partition("#")
    return f"[{words}]({posixpath.relpath(site_path(target), here or '.')}{mark}{anchor})"


def site_path(path: str) -> str:
    """Return the path in the site of a file of the repository."""
    return START if path == "README.md" else path.removeprefix(DOCS)


def _file(path: str, link: str) -> str | None:
    """Return the file of the repository that a link of a page leads to."""
    if "://" in link or link.startswith("#"):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link.partition("#")[0]))
    if (CHECKOUT / target).is_dir():
        target += "/README.md"
    return target if (CHECKOUT / target).is_file() else None


def slug(heading: str) -> str:
    """Return the anchor of a heading, as on GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
