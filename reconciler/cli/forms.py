"""The forms of answers that need no code of their own in a command: YAML is written where JSON is, wide as a table.

The keys are those of the click context's `meta`, which `options` sets and `printing` reads.
"""

from __future__ import annotations

YAML = "reconciler.cli.yaml"
"""Whether JSON is printed as YAML."""
WIDE = "reconciler.cli.wide"
"""Whether a table on a terminal has its empty columns too."""
JSONPATH = "reconciler.cli.jsonpath"
"""The JsonPath that is printed in place of the JSON."""
NAMES = "reconciler.cli.names"
"""The JsonPath of the names that are printed in place of the JSON, one a line."""
