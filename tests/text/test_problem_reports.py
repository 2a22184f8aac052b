"""Problems as other tools read them: GitHub's commands, SARIF and JUnit's XML."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from reconciler.errors import Problem, Severity
from reconciler.text.problem_reports import codequality, github_annotations, junit, sarif

ERROR = Problem(
    path="clusters/worker-2.yaml", line=8, field="spec.availabilty", message="unknown field", hint="try 'availability'"
)
WARNING = Problem(path="templates/vllm.yaml", message="is not read", severity=Severity.WARNING)


def test_an_annotation_has_its_place_and_the_way_out() -> None:
    assert github_annotations([ERROR, WARNING]) == (
        "::error file=clusters/worker-2.yaml,line=8,title=spec.availabilty::unknown field (try 'availability')\n"
        "::warning file=templates/vllm.yaml::is not read\n"
    )


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (Problem(path="a,b:c.yaml", message="m"), "::error file=a%2Cb%3Ac.yaml::m"),
        (Problem(path="a%0A.yaml", message="100 %"), "::error file=a%250A.yaml::100 %25"),
        (Problem(path="a", message="first\n::add-mask::x"), r"::error file=a::first\n::add-mask::x"),
        (Problem(path="", message="m"), "::error::m"),
    ],
)
def test_no_name_and_no_message_begins_a_command_of_its_own(problem: Problem, line: str) -> None:
    assert github_annotations([problem]) == f"{line}\n"


def test_sarif_has_a_result_for_each_problem() -> None:
    (run,) = json.loads(sarif([ERROR, WARNING], "1.2.3"))["runs"]
    assert run["tool"]["driver"]["version"] == "1.2.3"
    first, second = run["results"]
    assert first["level"] == "error"
    assert first["message"]["text"] == "spec.availabilty: unknown field (try 'availability')"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "clusters/worker-2.yaml"},
        "region": {"startLine": 8},
    }
    assert second["level"] == "warning"
    assert second["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    assert {result["ruleId"] for result in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_sarif_makes_no_link_of_what_a_file_says() -> None:
    odd = replace(ERROR, message="'[click](https://evil.example)' is no duration")
    (run,) = json.loads(sarif([odd], "1.2.3"))["runs"]
    assert "](" not in run["results"][0]["message"]["text"]
    assert "[click]" in run["results"][0]["message"]["text"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b#1?.yaml", "a%20b%231%3F.yaml"),
        ("100%/größe.yaml", "100%25/gr%C3%B6%C3%9Fe.yaml"),
        ("latin-\udce9.yaml", "latin-%E9.yaml"),
    ],
)
def test_a_path_in_sarif_is_a_uri(path: str, uri: str) -> None:
    (run,) = json.loads(sarif([Problem(path=path, message="m")], "1.2.3"))["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": uri}


def test_code_quality_has_an_issue_at_the_line_of_each_problem() -> None:
    first, second = json.loads(codequality([ERROR, WARNING]))
    assert first["location"] == {"path": ERROR.path, "lines": {"begin": ERROR.line}}
    assert ERROR.message in first["description"]
    assert (first["severity"], second["severity"]) == ("major", "minor")


def test_a_fingerprint_outlives_a_moved_line_and_is_no_other_problem_s() -> None:
    moved = replace(ERROR, line=(ERROR.line or 0) + 7)
    prints = [issue["fingerprint"] for issue in json.loads(codequality([ERROR, ERROR, WARNING]))]
    assert len({*prints}) == len(prints)
    assert json.loads(codequality([moved]))[0]["fingerprint"] == prints[0]


def test_code_quality_can_write_a_name_that_is_not_utf_8() -> None:
    (issue,) = json.loads(codequality([Problem(path="latin-\udce9.yaml", message="m\ud800")]))
    assert (issue["location"]["path"], issue["description"]) == ("latin-?.yaml", "m\\ud800")


def test_junit_drops_the_characters_that_xml_cannot_hold() -> None:
    hostile = Problem(path="a\ufffe\ud800.yaml", message="b\uffff\udfff\x0b\ufffd")
    report = junit([hostile], [])
    (case,) = ET.fromstring(report.encode("utf-8"))[0]
    assert case.get("name") == "a.yaml"
    assert str(case.findtext("failure")).endswith("\ufffd")


def test_junit_has_a_case_for_each_file_and_a_failure_for_each_with_errors() -> None:
    hostile = Problem(path='<a href="x">.yaml', message="\x00 & ]]>")
    suites = ET.fromstring(junit([ERROR, WARNING, hostile], ["fleet.yaml", "clusters/worker-2.yaml"]))
    (suite,) = suites
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    cases = {case.get("name"): case for case in suite}
    assert list(cases) == ['<a href="x">.yaml', "clusters/worker-2.yaml", "fleet.yaml", "templates/vllm.yaml"]
    failure = cases["clusters/worker-2.yaml"].find("failure")
    assert failure is not None
    assert failure.text == str(ERROR)
    assert cases["templates/vllm.yaml"].findtext("system-out") == str(WARNING)
    assert not list(cases["fleet.yaml"])
