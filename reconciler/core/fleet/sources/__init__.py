"""Templates that are made from a source: `spec.from` in place of a copy of objects (docs/decisions/0027).

A template file and what was read from its source become an ordinary template here, in `expansion`; nothing after it
knows of sources, but for what a placement is pinned to. Nothing is read here: callers give what they have read.
"""
