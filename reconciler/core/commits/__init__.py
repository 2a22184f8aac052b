"""From a plan to commits and events, and back from the log.

`templates` renders the template of each placement, `write` makes the files and commits of a plan, `messages` and
`trailers` their text, `events` the values for whoever wants to know; `cluster_branches` follows with the branches of
clusters, and `history` reads placements back from commit messages. Called by `daemon`, the git adapter and the command
line. The package turns a plan into text and bytes: it decides nothing and runs no git. A released message or
trailer keeps its format (docs/reference/commits.md).
"""
