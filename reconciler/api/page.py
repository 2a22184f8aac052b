"""The API as a page to read, made by the server from its own OpenAPI: no script, nothing from anywhere else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from reconciler.api.reference import chapters, error_schema

_PAGES = Environment(
    loader=PackageLoader("reconciler.api", "pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters["code_spans"] = lambda text: _code_spans(str(text))
_NOTHING = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""What a page may not do either, and what default-src does not cover."""


def router(document: Callable[[], Mapping[str, Any]]) -> APIRouter:
    """Build the route. `document` returns the OpenAPI of the application, which is complete when it is first asked."""
    routes = APIRouter()
    style = _PAGES.get_template("reading.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    headers = {
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{digest}'; {_NOTHING}",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }

    @cache
    def page() -> str:
        openapi = document()
        several = chapters(openapi)
        return _PAGES.get_template("reading.html").render(
            info=openapi["info"],
            chapters=several,
            refusal=error_schema(several),
            style=Markup(style),  # noqa: S704 - it is ours, and in a style element nothing can be escaped
        )

    @routes.get("/docs", include_in_schema=False)
    def read() -> HTMLResponse:
        """Show the page."""
        return HTMLResponse(page(), headers=headers)

    return routes


def _code_spans(text: str) -> Markup:
    """Show what stands between backticks as code."""
    code = Markup("<code>{}</code>")
    parts = (code.format(part) if number % 2 else escape(part) for number, part in enumerate(text.split("`")))
    return Markup("").join(parts)
