"""A fleet in miniature: a bare remote, three simulated clusters, and the real daemon between them.

Called by `overspill demo` only. What is simulated is the world: nodes, pods, and an engine that applies the output
branch. Overspill itself is not: its commands are started as processes, just as a user would start them, so nothing in
here imports `app` or `daemon`. `play` is what happens; a `View` shows it, as lines of text (`narrator`) or as a picture
with keys (`live`, drawn by `picture`). Writes only below the directory that it is given, and talks to no network.
"""

from reconciler.demo.play import demo

__all__ = ["demo"]
