"""The reference page of the API at /docs, rendered from its OpenAPI without scripts or outside resources."""

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
"""Directives of the Content-Security-Policy that default-src does not cover."""


def router(document: Callable[[], Mapping[str, Any]]) -> APIRouter:
    """Build the route. `document` returns the OpenAPI document; it is first called once all routes are included."""
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
            style=Markup(style),  # noqa: S704 - our own file, and a style element has no escapes
        )

    @routes.get("/docs", include_in_schema=False)
    def read() -> HTMLResponse:
        """Show the page."""
        return HTMLResponse(page(), headers=headers)

    return routes


def _code_spans(text: str) -> Markup:
    """Turn text between backticks into code elements."""
    code = Markup("<code>{}</code>")
    parts = (code.format(part) if number % 2 else escape(part) for number, part in enumerate(text.split("`")))
    return Markup("").join(parts)
