"""Schemas of the objects that API servers accept, and the kinds that the fleet repository defines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.workload import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The schema of one field or item of an object."""

    # Of a definition of Kubernetes, such as "core.v1.PodSpec"; empty for any other.
    name: str = ""
    # As in OpenAPI, and "int32", "int64", "quantity", "int-or-string"; empty for anything.
    type: str = ""
    # Of an object, by name; filled in later where definitions refer to each other.
    fields: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    # Of the items of a list, and of the values of an object whose names are free.
    values: Schema | None = None
    # The only values that are taken; empty for any.
    words: tuple[Json, ...] = ()
    # Whether an object may have fields that the schema does not name.
    is_open: bool = False
    # Whether a validation rule keeps the value as it was created.
    is_immutable: bool = False


ANYTHING = Schema()
"""The schema of a value that is not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomKind:
    """A kind that a CustomResourceDefinition defines."""

    group: str
    kind: str
    # The schema of each served version.
    versions: Mapping[str, Schema]
    # Whether its objects have no namespace; None where the definition does not say so.
    cluster_scoped: bool | None = None

    @property
    def name(self) -> str:
        """The key, ``group/Kind``."""
        return f"{self.group}/{self.kind}"


class FieldValidation(StrEnum):
    """Whether an object that an API server would refuse is refused here, or a warning."""

    STRICT = "Strict"
    WARN = "Warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSchemas:
    """The checks of objects beside the schemas of Kubernetes."""

    # Kinds of CustomResourceDefinitions in the fleet repository, by ``group/Kind``.
    custom: Mapping[str, CustomKind] = field(default_factory=dict)
    field_validation: FieldValidation = FieldValidation.STRICT
    # Names of resources that clusters declare, beside those of known vendors.
    resources: frozenset[str] = frozenset()


NO_SCHEMAS = ObjectSchemas()
"""The schemas of Kubernetes alone."""
