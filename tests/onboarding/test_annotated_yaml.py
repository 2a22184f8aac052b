"""Lines of YAML with comments read back as what they say, whatever the comments and values hold."""

from __future__ import annotations

import pytest

from reconciler.core.onboarding.annotated_yaml import AnnotatedLine, annotated_text, yaml_scalar
from reconciler.core.schema.yaml import parse


def test_a_comment_stands_beside_its_line() -> None:
    assert annotated_text([AnnotatedLine("  name: a", "its name"), AnnotatedLine("spec: {}")]) == (
        "  name: a # its name\nspec: {}\n"
    )


def test_a_comment_that_does_not_fit_stands_above_its_line_with_its_indent() -> None:
    assert str(AnnotatedLine("    name: a", "x" * 110)) == f"    # {'x' * 110}\n    name: a"


def test_a_comment_of_several_lines_adds_no_line_of_yaml() -> None:
    (document,) = parse(
        annotated_text([AnnotatedLine("a: 1", "first\nb: 2"), AnnotatedLine("", "c: 3\nd: 4")]).encode(), "a.yaml"
    )
    assert document.value == {"a": 1}


@pytest.mark.parametrize(
    "text", ["plain", "arn:aws:eks:eu-west-1:1:cluster/a", "yes", "1.0", "", "a: b", "a #b", "- x", "two\nlines", "'"]
)
def test_a_scalar_reads_back_as_the_same_text(text: str) -> None:
    (document,) = parse(annotated_text([AnnotatedLine(f"a: {yaml_scalar(text)}", "a text")]).encode(), "a.yaml")
    assert document.value == {"a": text}
