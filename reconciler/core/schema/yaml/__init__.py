"""Strict YAML in, and YAML out that Go's readers take the same way.

Called by everything that turns bytes into values or values into files. Reading is stricter than YAML, because PyYAML
and kubectl's reader differ in all of this:

1. only JSON's own scalars are typed (``true``, ``12``, ``1.5``, ``null`` and nothing at all); every other one is text;
2. duplicate keys, anchors, aliases, merge keys and tags are refused;
3. files over 1 MiB, deeper than 64 levels or of more than 100,000 values are refused before they cost anything;
4. the encoding is UTF-8 without a byte order mark.

All problems of a file are reported together, up to the first place where the text stops being YAML at all.
"""

from reconciler.core.schema.yaml.document import Document
from reconciler.core.schema.yaml.dump import emit, reads_back
from reconciler.core.schema.yaml.json_body import read_object
from reconciler.core.schema.yaml.limits import MAX_BYTES, MAX_DEPTH, MAX_NODES, MAX_PROBLEMS, too_large
from reconciler.core.schema.yaml.load import parse

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "MAX_PROBLEMS",
    "Document",
    "emit",
    "parse",
    "read_object",
    "reads_back",
    "too_large",
]
