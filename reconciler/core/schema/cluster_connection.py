"""How the daemon reaches a cluster, as its file says it."""

from __future__ import annotations

from pydantic import Field, model_validator

from reconciler.core.schema.strict_model import Strict, Text, refusal
from reconciler.model.policy import Connection


class ConnectionFile(Strict):
    """How the daemon reaches the cluster's API server. Addresses and credentials are never in the fleet repository."""

    context: Text | None = Field(None, description="A context of the daemon's kubeconfig; else the cluster's name.")
    in_cluster: bool = Field(False, description="The daemon runs in this cluster, and uses its service account.")
    argocd: bool = Field(False, description="With the login that Argo CD has for the cluster of this name.")

    @model_validator(mode="after")
    def _one_way(self) -> ConnectionFile:
        """Refuse two ways at once."""
        ways = {"context": self.context is not None, "inCluster": self.in_cluster, "argocd": self.argocd}
        named = [way for way, meant in ways.items() if meant]
        if len(named) > 1:
            raise refusal(f"has both {named[0]} and {named[1]}", f"try leaving {named[0]} out")
        return self

    def value_of(self, cluster: str) -> Connection:
        """Make the model's value."""
        if self.argocd:
            return Connection(argocd=cluster)
        context = "" if self.in_cluster else self.context or cluster
        return Connection(context=context, in_cluster=self.in_cluster)


class ArgoCDConnectionFile(Strict):
    """How the daemon reaches the cluster that Argo CD runs in, whether or not that is one of the fleet."""

    context: Text | None = Field(None, description="A context of the daemon's kubeconfig.")
    in_cluster: bool = Field(False, description="The daemon runs in that cluster, and uses its service account.")

    @model_validator(mode="after")
    def _one_way(self) -> ArgoCDConnectionFile:
        """Refuse two ways at once, or none."""
        if self.context is not None and self.in_cluster:
            raise refusal("has both context and inCluster", "try leaving context out")
        if self.context is None and not self.in_cluster:
            raise refusal("has neither context nor inCluster", "try inCluster: true")
        return self

    def value_of(self) -> Connection:
        """Make the model's value."""
        return Connection(context=self.context or "", in_cluster=self.in_cluster)
