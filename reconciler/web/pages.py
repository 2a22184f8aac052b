"""Templates as responses, with the headers that keep a page to what is ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from fastapi import Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from reconciler.text.ages import format_age
from reconciler.text.timestamps import format_time

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'"
)
"""Our own files and nothing else: no inline script or style, no eval, no frame."""
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
"""That of a report of the lab, whose file has its style in it: it may do nothing, and is of no origin."""
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
ASSETS: Mapping[str, str] = {
    "page.css": "page.css",
    "live.js": "live.js",
    "login.js": "login.js",
    "time.js": "time.js",
    "icon.svg": "icon.svg",
    "htmx.js": "vendor/htmx.min.js",
    "uplot.js": "vendor/uplot.min.js",
    "uplot.css": "vendor/uplot.min.css",
}
"""The files that a browser may load, by their names in addresses."""
_NONE = "\N{EN DASH}"
_CODE = re.compile(r"`([^`\n]+)`")
_YEAR = 365 * 24 * 3600


class Assets:
    """The files of the page, each under an address that changes with its content, so that browsers may keep it."""

    def __init__(self) -> None:
        """Read them all: they are few."""
        directory = files("reconciler.web") / "static"
        self._content = {name: (directory / path).read_bytes() for name, path in ASSETS.items()}
        self._digests = {name: sha256(data).hexdigest()[:16] for name, data in self._content.items()}

    def address(self, name: str) -> str:
        """Return the address of a file."""
        return f"/static/{self._digests[name]}/{name}"

    def response(self, digest: str, name: str) -> Response | None:
        """Answer with a file; None where there is none of this content."""
        if self._digests.get(name) != digest:
            return None
        kind = _TYPES[name[name.rindex(".") :]]
        headers = {**HEADERS, "Cache-Control": f"public, max-age={_YEAR}, immutable"}
        return Response(self._content[name], media_type=kind, headers=headers)


class Pages:
    """Renders templates."""

    def __init__(self, assets: Assets) -> None:
        """Make the environment: everything is escaped, and what is not there is an error."""
        self._environment = Environment(
            loader=PackageLoader("reconciler.web", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals["asset"] = assets.address
        self._environment.filters |= {
            "age": format_age,
            "clock": _clock,
            "code_spans": _code_spans,
            "moment": _moment,
            "iso": format_time,
            "dollars": lambda amount: f"{amount:,.2f} $",
            "hours": lambda hours: f"{hours:,.1f}",
            "number": lambda value: _NONE if value is None else f"{value:,}",
            "size": lambda number: f"{number / 1024:,.0f} KB",
        }

    def render(
        self,
        name: str,
        values: Mapping[str, Any],
        status: int = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """Answer with a template. Nothing that a page shows is kept by a browser or on the way."""
        text = self._environment.get_template(name).render(values)
        return HTMLResponse(text, status, headers={**HEADERS, "Cache-Control": "no-store", **(headers or {})})


def _code_spans(text: object) -> Markup:
    """Write a reason, a condition or a hint, in which code stands between backticks as in Markdown."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before, code included


def _moment(at: datetime, now: datetime | None = None) -> Markup:
    """Write a moment with its day where that is not today's."""
    at = at.astimezone(UTC)
    same_day = now is not None and at.date() == now.astimezone(UTC).date()
    text = f"{at:%H:%M} UTC" if same_day else f"{at:%d %b %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(format_time(at), text)


def _clock(at: datetime) -> Markup:
    """Write a moment of today to the second."""
    return Markup('<time datetime="{}">{}</time>').format(format_time(at), f"{at.astimezone(UTC):%H:%M:%S} UTC")
