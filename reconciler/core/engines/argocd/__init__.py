"""Argo CD: one Application a placement, made by an ApplicationSet in the one cluster that Argo CD runs in.

`engine` writes a placement's files, `bootstrap` the AppProject and the ApplicationSet that an admin applies, with the
bounds of every placement. `applications` reads what an Application's status says of its placement, and
`cluster_secrets` the logins that Argo CD has for clusters. Called through the register of `core.engines` alone.
"""

from __future__ import annotations

from reconciler.core.engines.argocd.engine import ArgoCDEngine

__all__ = ["ArgoCDEngine"]
