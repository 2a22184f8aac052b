"""Problems in the formats of other tools: annotations of GitHub Actions, Code Quality, SARIF, and JUnit's XML.

The formats: https://docs.github.com/actions/reference/workflow-commands-for-github-actions,
https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format,
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, and the XML that GitLab and Jenkins read as reports of
tests (https://docs.gitlab.com/ci/testing/unit_test_reports/).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from reconciler.errors import Problem, Severity, one_line
from reconciler.text.references import GAP

_RULE = "fleet-repository"
_UNWRITABLE = dict.fromkeys(
    (*(code for code in range(32) if chr(code) not in "\t\n\r"), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
)
"""Characters that XML cannot hold (https://www.w3.org/TR/xml/#charsets)."""


def github_annotations(problems: Iterable[Problem]) -> str:
    """Return a workflow command for each problem, which GitHub shows at its line of the pull request."""
    return "".join(f"{_annotation(problem)}\n" for problem in problems)


def _annotation(problem: Problem) -> str:
    command = "error" if problem.severity is Severity.ERROR else "warning"
    properties = [("file", problem.path)] if problem.path else []
    properties += [("line", str(problem.line))] if problem.line else []
    properties += [("title", problem.field)] if problem.field else []
    told = ",".join(f"{name}={_property(value)}" for name, value in properties)
    return f"::{command}{f' {told}' if told else ''}::{_data(_words(problem))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def codequality(problems: Iterable[Problem]) -> str:
    """Return a Code Quality report, which GitLab shows on the merge request, and at the lines of its changes.

    A fingerprint is that of a problem wherever its line has moved to, and no other's in the report.
    """
    issues, seen = [], Counter[tuple[str, str]]()
    for problem in problems:
        place = _plain(problem.path), _plain(_told(problem))
        seen[place] += 1
        issues.append(
            {
                "description": place[1],
                "check_name": _RULE,
                "fingerprint": sha256("\0".join((*place, str(seen[place]))).encode()).hexdigest(),
                "severity": "major" if problem.severity is Severity.ERROR else "minor",
                "location": {"path": place[0], "lines": {"begin": max(1, problem.line or 1)}},
            }
        )
    return f"{json.dumps(issues, indent=2)}\n"


def _plain(text: str) -> str:
    """Return text with a question mark for each surrogate, which stands for a byte of a name that is not UTF-8."""
    return text.encode(errors="replace").decode()


def sarif(problems: Iterable[Problem], version: str) -> str:
    """Return a SARIF log of one run of the given version of the program."""
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "overspill",
                        "version": version,
                        "rules": [
                            {
                                "id": _RULE,
                                "shortDescription": {
                                    "text": "A file of the fleet repository is not what it should be."
                                },
                            }
                        ],
                    }
                },
                "results": [
                    {
                        "ruleId": _RULE,
                        "level": "error" if problem.severity is Severity.ERROR else "warning",
                        "message": {"text": _without_links(_told(problem))},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": _uri(problem.path)},
                                    "region": {"startLine": max(1, problem.line or 1)},
                                }
                            }
                        ],
                    }
                    for problem in problems
                ],
            }
        ],
    }
    return f"{json.dumps(log, indent=2)}\n"


def _uri(path: str) -> str:
    """Return a path as a relative URI; surrogates stand for the bytes of a name that is not UTF-8."""
    return quote(path, errors="surrogateescape")


def junit(problems: Iterable[Problem], files: Sequence[str]) -> str:
    """Return a test report with a case for each file: errors are failures, warnings are its output."""
    by_path = defaultdict[str, list[Problem]](list)
    for problem in problems:
        by_path[problem.path].append(problem)
    cases = [(path, by_path.get(path, [])) for path in sorted({*files, *by_path})]
    failures = sum(any(problem.severity is Severity.ERROR for problem in found) for _, found in cases)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites><testsuite name="overspill check" tests="{len(cases)}" failures="{failures}">',
        *(_case(path, found) for path, found in cases),
        "</testsuite></testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(path: str, problems: Sequence[Problem]) -> str:
    errors = [str(problem) for problem in problems if problem.severity is Severity.ERROR]
    warnings = [str(problem) for problem in problems if problem.severity is not Severity.ERROR]
    name = quoteattr(path.translate(_UNWRITABLE))
    parts = (
        [f"<failure message={quoteattr(errors[0].translate(_UNWRITABLE))}>{_text(errors)}</failure>"] if errors else []
    )
    parts += [f"<system-out>{_text(warnings)}</system-out>"] if warnings else []
    return f'<testcase classname="fleet" file={name} name={name}>{"".join(parts)}</testcase>'


def _text(lines: Iterable[str]) -> str:
    return escape("\n".join(lines).translate(_UNWRITABLE))


def _without_links(text: str) -> str:
    """Return a text without SARIF's links, ``[words](https://...)``, which stand in plain messages as well (3.11.6)."""
    return text.replace("](", f"]{GAP}(")


def _told(problem: Problem) -> str:
    return f"{problem.field}: {_words(problem)}" if problem.field else _words(problem)


def _words(problem: Problem) -> str:
    """Say what is wrong and the way out, without the place."""
    return one_line(f"{problem.message} ({problem.hint})" if problem.hint else problem.message)
