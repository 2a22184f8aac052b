"""What a Cluster file says its cluster has, for what is placed there to refer to."""

from __future__ import annotations

from pydantic import Field

from reconciler.core.schema.strict_model import Strict, Text
from reconciler.model.prerequisites import Category, Provides

_NAMED = "as 'namespace/name', or 'name' in any namespace"


class ProvidesFile(Strict):
    """What a cluster has, as names or globs. What a list that is there leaves out, the cluster does not have."""

    kinds: list[Text] | None = Field(None, description="Custom kinds that are installed, as 'group/Kind'.")
    schedulers: list[Text] | None = Field(None, description="Schedulers beside the usual one, by schedulerName.")
    queues: list[Text] | None = Field(None, description=f"Queues of Kueue, Volcano and KAI; LocalQueues {_NAMED}.")
    pod_groups: list[Text] | None = Field(None, description=f"PodGroups, {_NAMED}.")
    topologies: list[Text] | None = Field(None, description="Topologies of KAI.")
    priority_classes: list[Text] | None = Field(None, description="PriorityClasses, and Kueue's of workloads.")
    runtime_classes: list[Text] | None = Field(None, description="RuntimeClasses.")
    runtimes: list[Text] | None = Field(None, description="Runtimes of Kubeflow Trainer and KServe.")
    volumes: list[Text] | None = Field(None, description=f"PersistentVolumeClaims, {_NAMED}.")
    storage_classes: list[Text] | None = Field(None, description="StorageClasses.")
    config_maps: list[Text] | None = Field(None, description=f"ConfigMaps, {_NAMED}.")
    secrets: list[Text] | None = Field(None, description=f"Secrets, {_NAMED}.")
    service_accounts: list[Text] | None = Field(None, description=f"ServiceAccounts, {_NAMED}.")
    networks: list[Text] | None = Field(None, description=f"NetworkAttachmentDefinitions, {_NAMED}.")
    claim_templates: list[Text] | None = Field(None, description=f"ResourceClaimTemplates, {_NAMED}.")
    claims: list[Text] | None = Field(None, description=f"ResourceClaims, {_NAMED}.")
    device_classes: list[Text] | None = Field(None, description="DeviceClasses, beside those that are seen.")
    images: list[Text] | None = Field(None, description="Images that are on its nodes, whole: 'registry/name:tag'.")

    def value_of(self) -> Provides:
        """Make the model's value."""
        said = self.model_dump(by_alias=True, exclude_none=True)
        return {Category(name): tuple(dict.fromkeys(patterns)) for name, patterns in said.items()}
