"""The decision of a pass: a PassInput becomes a Plan.

Called by the daemon's pass, by the command line and by `core.explain`; `decide.py` is the list of steps in order. The
layers below it, from the top: `orders` (changes that somebody asks for), `steps` (one change of the plan each),
`turns` (who takes room before whom), `assign` (missing replicas to candidates), `candidates` (order, filter and fit of
clusters), `state` (the input, and the plan so far), `distribution` (arithmetic).
Nothing here may read a clock, know the bytes of a file, or render a template: the same input gives the same plan.
"""
