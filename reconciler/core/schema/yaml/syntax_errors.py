"""Syntax errors of YAML in terms of the file: place, fault, and a remedy for the common ones."""

from __future__ import annotations

import re

import yaml

from reconciler.core.schema.yaml.limits import MAX_BYTES, too_large
from reconciler.errors import Problem
from reconciler.text.findings import shortened

_BREAK = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")
"""The line ends of YAML 1.1, which the parser's line numbers count."""

_TAG_DIRECTIVE = "%TAG"
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7})(?:\s|$)")
_EXPRESSION = re.compile(r"(?:^|[-:,\[{])\s*(\{\{[^{}]*\}\})")


def encoding_problem(data: bytes, path: str) -> Problem | None:
    """Return the problem of a file that cannot be decoded."""
    if len(data) > MAX_BYTES:
        return too_large(path, len(data))
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return Problem(
                path=path,
                line=1,
                message=f"begins with a byte order mark of {name}",
                hint="try saving it as UTF-8 without one",
            )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        return Problem(path=path, line=line, message=f"is not UTF-8 (byte 0x{byte:02x})", hint="try saving it as UTF-8")
    if _TAG_DIRECTIVE in text:
        for number, line_text in enumerate(_BREAK.split(text), start=1):
            if line_text.startswith(_TAG_DIRECTIVE):
                return Problem(path=path, line=number, message="tags are not read", hint="try removing the %TAG line")
    return None


def syntax_problem(error: yaml.YAMLError, data: bytes, path: str) -> Problem:
    """Turn a parser error into a problem."""
    mark = getattr(error, "problem_mark", None)
    text = getattr(error, "problem", None) or getattr(error, "reason", None) or "is not YAML"
    if mark is None:
        position = getattr(error, "position", 0)
        line = len(_BREAK.findall(data.decode()[:position])) + 1 if isinstance(position, int) else 0
        return Problem(path=path, line=line, message=f"is not YAML: {text}", hint="try removing the character")
    lines = _BREAK.split(data.decode())
    conflict = next((number for number, written in enumerate(lines, start=1) if _CONFLICT.match(written)), None)
    if conflict is not None:
        hint = "try keeping one side and removing the markers"
        return Problem(path=path, line=conflict, message="holds a merge conflict marker", hint=hint)
    line = min(mark.line, len(lines) - 1)
    written = lines[line]
    hint = ""
    if written[: mark.column + 1].strip(" -?:").startswith("\t"):
        text, hint = "a tab cannot indent", "try spaces"
    elif quoted := _quote(written):
        hint = quoted
    elif "mapping values are not allowed" in text:
        hint = "check the indentation, or quote a value that holds ': '"
    elif "cannot start any token" in text:
        hint = "try quoting the value"
    elif "could not find expected ':'" in text:
        hint = "try a ':' after the key, or quoting the value"
    elif "did not find expected" in text:
        hint = "try closing what is open" if "',' or" in text else "try aligning it with the lines above"
    return Problem(path=path, line=line + 1, message=f"is not YAML: {text}", hint=hint)


def key_hint(data: bytes, line: int) -> str:
    """Return the remedy for a mapping or a list in place of a key; `line` counts from 1."""
    return _quote(_BREAK.split(data.decode())[line - 1]) or "try quoting it"


def _quote(written: str) -> str:
    """Return the quoted form of an unquoted expression on a line, whose braces YAML takes for mappings."""
    match = _EXPRESSION.search(written)
    if match is None:
        return ""
    expression = shortened(match[1])
    quote = "'" if '"' in expression else '"'
    return f"put quotes around the whole expression: {quote}{expression}{quote}"
