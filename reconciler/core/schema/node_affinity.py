"""Node selector terms as pod specs have them."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from reconciler.core.schema.strict_model import Strict, Text, refusal
from reconciler.model.kubernetes.requirements import Requirement, Requirements

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


class NodeOperator(StrEnum):
    """Operators of a label requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class RequirementShape(Strict):
    """The requirement on a label of a node, checked field by field."""

    key: Text = Field(description="A label.")
    operator: Annotated[NodeOperator, Field(strict=False)] = Field(description="How the label compares.")
    values: list[str] = Field([], description="Values; one whole number for `Gt` and `Lt`.")

    def fault(self) -> tuple[str, str]:
        """Return the fault that the API server finds in it, and the remedy; both empty if there is none."""
        match self.operator:
            case NodeOperator.IN | NodeOperator.NOT_IN if not self.values:
                return f"{self.operator} needs values", "try 'values: [a, b]'"
            case NodeOperator.EXISTS | NodeOperator.DOES_NOT_EXIST if self.values:
                return f"{self.operator} takes no values", "leave out values, or try 'operator: In'"
            case NodeOperator.GT | NodeOperator.LT if len(self.values) != 1 or not _INTEGER.fullmatch(self.values[0]):
                return f"{self.operator} needs one whole number", """try 'values: ["8"]'"""
        return "", ""

    def value_of(self) -> Requirement:
        """Make the model's value."""
        return Requirement(key=self.key, operator=str(self.operator), values=tuple(self.values))


class RequirementFile(RequirementShape):
    """The requirement on a label of a node."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Refuse a requirement that the API server refuses in a pod."""
        message, hint = self.fault()
        if message:
            raise refusal(message, hint)
        return self


class FieldRequirementFile(Strict):
    """The requirement on the name of a node: the API server knows no other field, and takes one value."""

    key: Literal["metadata.name"] = Field(description="`metadata.name`.")
    operator: Literal["In", "NotIn"] = Field(description="How the name compares.")
    values: Annotated[list[str], Field(min_length=1, max_length=1)] = Field(description="One name.")

    def value_of(self) -> Requirement:
        """Make the model's value."""
        return Requirement(key=self.key, operator=self.operator, values=tuple(self.values))


class NodeTermFile(Strict):
    """Requirements that hold together; one without any is met by no node."""

    match_expressions: list[RequirementFile] = Field([], description="Requirements on labels.")
    match_fields: list[FieldRequirementFile] = Field([], description="Requirements on the node's name.")

    def value_of(self) -> Requirements:
        """Make the model's value."""
        labels, fields = self.match_expressions, self.match_fields
        return Requirements(
            labels=tuple(label.value_of() for label in labels), fields=tuple(field.value_of() for field in fields)
        )
