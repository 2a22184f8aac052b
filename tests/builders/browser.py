"""A browser without scripts: it keeps cookies, sends forms as they stand, and follows no redirect by itself."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from typing import Any


@dataclass
class Form:
    """A form, with what stands in its fields."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[dict[str, str]] = field(default_factory=list)


class Document(HTMLParser):
    """What a page holds."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.forms: list[Form] = []
        self._words: list[str] = []
        self._option: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.elements.append((tag, values))
        if tag == "form":
            self.forms.append(Form(values.get("action", ""), values.get("method", "get")))
        elif tag == "input" and self.forms and values.get("name"):
            if values.get("type") != "checkbox" or "checked" in values:
                self.forms[-1].fields[values["name"]] = values.get("value", "")
        elif tag == "select" and self.forms:
            self._option = values.get("name", "")
            self.forms[-1].fields.setdefault(self._option, "")
        elif tag == "option" and self._option is not None and "selected" in values:
            self.forms[-1].fields[self._option] = values.get("value", "")
        elif tag == "button" and self.forms:
            self.forms[-1].buttons.append(values)

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._option = None

    def handle_data(self, data: str) -> None:
        self._words.append(data)

    @property
    def text(self) -> str:
        """All words of the page, with single blanks between."""
        return " ".join(" ".join(self._words).split())

    def form(self, action: str) -> Form:
        """Return the form with an address that begins so."""
        return next(form for form in self.forms if form.action.startswith(action))

    def links(self) -> list[str]:
        return [values["href"] for tag, values in self.elements if tag == "a" and "href" in values]


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Message
    body: bytes

    @property
    def page(self) -> Document:
        return Document(self.body.decode())

    @property
    def text(self) -> str:
        return self.page.text


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none."""


class Browser:
    """One browser."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.cookies: dict[str, str] = {}
        self.attributes: dict[str, Mapping[str, Any]] = {}
        self._opener = urllib.request.build_opener(_Stay())

    def get(self, path: str, **headers: str) -> Answer:
        return self._send(urllib.request.Request(self._address(path)), headers)

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        data = urllib.parse.urlencode(fields).encode()
        origin = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
        return self._send(urllib.request.Request(self._address(path), data), {**origin, **headers})

    def submit(self, form: Form, button: Mapping[str, str] | None = None, /, **fields: str) -> Answer:
        """Send a form by one of its buttons, the last one unless another is given."""
        pressed = button if button is not None else form.buttons[-1]
        named = {pressed["name"]: pressed.get("value", "")} if pressed.get("name") else {}
        return self.post(form.action, {**form.fields, **named, **fields})

    def sign_in(self, token: str, target: str = "/") -> Answer:
        page = self.get(f"/login?next={urllib.parse.quote(target)}").page
        return self.submit(page.form("/login"), token=token)

    def follow(self, answer: Answer) -> Answer:
        assert answer.status == 303, answer.text
        return self.get(answer.headers["location"])

    def _address(self, path: str) -> str:
        return path if path.startswith("http") else self.origin + path

    def _send(self, request: urllib.request.Request, headers: Mapping[str, str]) -> Answer:
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        if self.cookies:
            request.add_header("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        try:
            with self._opener.open(request, timeout=60) as response:
                return self._kept(Answer(response.status, response.headers, response.read()))
        except urllib.error.HTTPError as error:
            with error:
                return self._kept(Answer(error.code, error.headers, error.read()))

    def _kept(self, answer: Answer) -> Answer:
        for header in answer.headers.get_all("set-cookie") or ():
            for name, morsel in SimpleCookie(header).items():
                self.attributes[name] = {
                    key: morsel[key] for key in ("path", "samesite", "httponly", "secure", "max-age")
                }
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
        return answer
