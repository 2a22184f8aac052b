"""The schemas of files that people write: the only place where parsed YAML becomes typed fields.

The models are strict: unknown fields are errors, ``"3"`` is no number and ``3`` is no text. Each makes its value of
`reconciler.model`, which the other packages use, and each is published as a JSON Schema.
"""

from reconciler.core.schema.errors import validation_findings
from reconciler.core.schema.registry import KINDS, OURS, KindSupport, json_schema, kind_verdict
from reconciler.core.schema.strict_model import API_VERSION, Strict

__all__ = [
    "API_VERSION",
    "KINDS",
    "OURS",
    "KindSupport",
    "Strict",
    "json_schema",
    "kind_verdict",
    "validation_findings",
]
