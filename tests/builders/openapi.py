"""What OpenAPI promises, held against what is answered."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from jsonschema import Draft202012Validator


class Contract:
    """The OpenAPI document of an application."""

    def __init__(self, app: FastAPI) -> None:
        self.document = app.openapi()
        # A path without parameters goes before one that would take its last part for one.
        by_length = sorted(self.document["paths"], key=lambda path: path.count("{"))
        self._paths = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in by_length]

    def check(self, method: str, url: str, status: int, body: object) -> None:
        """Fail if a status is not told of for a route, or a body does not fit its schema."""
        path = urlsplit(url).path
        found = next((name for pattern, name in self._paths if pattern.fullmatch(path)), None)
        operation = self.document["paths"].get(found, {}).get(method.lower())
        if operation is None:
            return
        assert str(status) in operation["responses"], f"{method} {found} is not told to answer {status}"
        self.fit(operation["responses"][str(status)]["content"]["application/json"]["schema"], body)

    def fit(self, schema: dict[str, Any], value: object) -> None:
        """Fail if a value does not fit a schema of the document."""
        whole = {**schema, "components": self.document["components"]}
        Draft202012Validator(whole).validate(value)
