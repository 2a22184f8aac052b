"""The strict base model of all files, and common field types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from reconciler.model.ids import is_name
from reconciler.model.units import Quantity, Resources, format_duration, parse_duration, parse_quantity, quantity_hint
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

API_VERSION = "overspill.dev/v1alpha1"

T = TypeVar("T")
_LONGEST = 100
"""Characters of a duration or an amount; longer texts are refused and not repeated."""
_NOTHING = re.compile(r"0+[dhms]?")
_NAME_SCHEMA = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
_DURATION_SCHEMA = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?[dhms])+$", "examples": ["10m", "1h30m"]}
_QUANTITY_SCHEMA = {"type": ["string", "number"], "examples": [4, "500m", "8Gi"]}


class Strict(BaseModel):
    """A part of a file: fields in camelCase, no others, each of exactly its type.

    A known field that is null counts as absent, as Kubernetes reads it. `strangers` are fields that people write here
    by habit, with what to do instead.
    """

    strangers: ClassVar[Mapping[str, str]] = {}

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        serialize_by_alias=True,
        use_attribute_docstrings=False,
        defer_build=True,  # most commands read few kinds; pydantic locks the build, since 2.14
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Json) -> Json:
        """Drop null fields that are known; unknown ones are still reported."""
        if not isinstance(value, Mapping) or None not in value.values():
            return value
        aliases = {field.alias for field in cls.model_fields.values()}
        return {key: child for key, child in value.items() if child is not None or key not in aliases}


def refusal(message: str, hint: str = "") -> PydanticCustomError:
    """Build the error that a validator raises, with its remedy."""
    return PydanticCustomError("refused", "{message}", {"message": message, "hint": hint})


def merge_alias(value: Json, written: str, usual: str) -> Json:
    """Read a field under its usual name or its alias; refuse both if they differ."""
    if not isinstance(value, Mapping) or written not in value:
        return value
    if value.get(usual, value[written]) != value[written]:
        raise refusal(f"has both {written} and {usual}, and they differ", f"try keeping {usual}")
    return {**{key: child for key, child in value.items() if key != written}, usual: value[written]}


def _name(text: str) -> str:
    """Refuse a name that cannot be part of a path or a label."""
    if is_name(text):
        return text
    likely = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].rstrip("-")
    hint = f"try '{likely}'" if likely else "try lower-case letters, digits and '-'"
    raise refusal(f"{shortened(text)!r} is not a name of lower-case letters, digits and '-' (63 at most)", hint)


def _duration(value: Json) -> timedelta:
    """Read a duration; the error for a bare number shows the right form."""
    if isinstance(value, timedelta):
        return value
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    if not text:
        raise refusal("must be a duration", "try '10m' or '1h30m'")
    if not isinstance(value, str):
        raise refusal(f"{text} has no unit", f"try '{text}s'")
    if len(text) > _LONGEST:
        raise refusal(f"{shortened(text)!r} is not a duration", "try '10m' or '1h30m'")
    try:
        return parse_duration(text)
    except ValueError as error:
        raise refusal(str(error)) from error


def _window(value: Json) -> timedelta:
    """Read a duration that may be zero, such as ``0s``."""
    if isinstance(value, str) and _NOTHING.fullmatch(value) and value[-1].isalpha():
        return timedelta(0)
    return _duration(value)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    """Cache the few amounts that all nodes of a fleet share."""
    return parse_quantity(text)


def _path_pattern(text: str) -> str:
    """Refuse a pattern that another tool would read otherwise."""
    if text.startswith("!"):
        raise refusal(f"{shortened(text)!r} takes paths away, which is not supported", "try listing what is meant")
    if ".." in text.split("/") or "\\" in text:
        raise refusal(f"{shortened(text)!r} is no path from the root of the repository", "try 'teams/llm/**'")
    return text


def _quantity(value: Json) -> int:
    """Read a quantity that may be a number or a text, as in Kubernetes."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise refusal("must be an amount", quantity_hint(""))
    text = value if isinstance(value, str) else str(value)
    if len(text) > _LONGEST:
        raise refusal(f"{shortened(text)!r} is not a quantity", quantity_hint(""))
    try:
        return _parse(text)
    except ValueError as error:
        raise refusal(str(error), quantity_hint(text)) from error


_AS_TEXT = PlainSerializer(format_duration, return_type=str)
Name = Annotated[str, AfterValidator(_name), WithJsonSchema(_NAME_SCHEMA)]
Duration = Annotated[timedelta, BeforeValidator(_duration), _AS_TEXT, WithJsonSchema(_DURATION_SCHEMA)]
Window = Annotated[timedelta, BeforeValidator(_window), _AS_TEXT, WithJsonSchema(_DURATION_SCHEMA)]
Amount = Annotated[int, BeforeValidator(_quantity), WithJsonSchema(_QUANTITY_SCHEMA)]
Text = Annotated[str, Field(min_length=1)]
PathPattern = Annotated[Text, AfterValidator(_path_pattern)]
Labels = dict[str, str]
Amounts = dict[str, Amount]
Anything = dict[str, Any]


def resources(amounts: Mapping[str, int]) -> Resources:
    """Make a value of parsed amounts."""
    return Resources(amounts={name: Quantity(amount) for name, amount in amounts.items()})


class Metadata(Strict):
    """The fields of Kubernetes' metadata that are read here, and those that kubectl exports."""

    name: Name = Field(
        description=(
            "Unique in its kind; of a template, in its workspace; of a WorkloadSpread, in its namespace, with dots too."
        )
    )
    namespace: str = Field("", description="Of EGS's kinds: where EGS keeps it; of a WorkloadSpread: its workload's.")
    labels: Labels = Field({}, description="Labels; a Cluster's are what policies select by.")
    annotations: Labels = Field({}, description="Annotations; of `overspill.dev` those below are read.")
    uid: Any = Field(None, description="Exported by kubectl; not read.")
    generation: Any = Field(None, description="Exported by kubectl; not read.")
    generate_name: Any = Field(None, description="Exported by kubectl; not read.")
    resource_version: Any = Field(None, description="Exported by kubectl; not read.")
    creation_timestamp: Any = Field(None, description="Exported by kubectl; not read.")
    deletion_timestamp: Any = Field(None, description="Exported by kubectl; not read.")
    deletion_grace_period_seconds: Any = Field(None, description="Exported by kubectl; not read.")
    managed_fields: Any = Field(None, description="Exported by kubectl; not read.")
    owner_references: Any = Field(None, description="Exported by kubectl; not read.")
    finalizers: Any = Field(None, description="Exported by kubectl; not read.")
    self_link: Any = Field(None, description="Exported by kubectl; not read.")
