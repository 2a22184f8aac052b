"""The figures and pictures of runs as one HTML page, which needs nothing beside it: no script, no font, no server."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from reconciler.lab import picture
from reconciler.lab.report import HEADERS, Comparison, rows

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1160px; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid #8c959f55; white-space: nowrap; }
td:last-child { white-space: normal; min-width: 22rem; }
svg { width: 100%; min-width: 700px; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
.scroll { overflow-x: auto; } .about { opacity: .7; margin-top: -.6rem; }
.key { font-size: 13px; } .key span { display: inline-block; margin-right: 1.2rem; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: 2px; }
"""


def page(comparisons: Sequence[Comparison], title: str = "Overspill lab") -> str:
    """Write the page."""
    body = "\n".join(_section(comparison) for comparison in comparisons)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{_key()}\n{body}\n</body>\n</html>\n"
    )


def _key() -> str:
    areas, marks = (
        "".join(f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for name, colour in key.items())
        for key in (picture.AREAS, picture.KINDS)
    )
    return f'<p class="key">{areas}<span>commits:</span>{marks}</p>'


def _section(comparison: Comparison) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in HEADERS[1:])
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row[1:])}</tr>" for row in rows(comparison))
    pictures = "\n".join(
        f'<h3>{escape(result.controller)}</h3>\n<div class="scroll">{picture.draw(result, comparison.length)}</div>'
        for result in comparison.results
        if result.samples
    )
    return (
        f'<h2 id="{escape(comparison.scenario)}">{escape(comparison.scenario)}</h2>\n'
        f'<p class="about">{escape(comparison.about)}</p>\n'
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>\n{pictures}'
    )
