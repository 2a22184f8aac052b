"""How the daemon reaches a cluster, as its file says it."""

from __future__ import annotations

from pydantic import Field, model_validator

from reconciler.core.schema.strict import Strict, Text, refusal
from reconciler.model.policy import Connection


class ConnectionFile(Strict):
    """How the daemon reaches the cluster's API server. Addresses and credentials stay in the daemon's kubeconfig."""

    context: Text | None = Field(None, description="A context of the daemon's kubeconfig; else the cluster's name.")
    in_cluster: bool = Field(False, description="The daemon runs in this cluster, and uses its service account.")

    @model_validator(mode="after")
    def _one_way(self) -> ConnectionFile:
        """Refuse two ways at once."""
        if self.context is not None and self.in_cluster:
            raise refusal("has both context and inCluster", "try leaving context out")
        return self

    def value_of(self, cluster: str) -> Connection:
        """Make the model's value."""
        context = "" if self.in_cluster else self.context or cluster
        return Connection(context=context, in_cluster=self.in_cluster)
