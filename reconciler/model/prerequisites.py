"""What a cluster must have before objects of a template can work there, and what a cluster is said to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Category(StrEnum):
    """What can be needed: the fields of a Cluster's ``spec.provides``, in the order in which they are told."""

    KINDS = "kinds"
    SCHEDULERS = "schedulers"
    QUEUES = "queues"
    POD_GROUPS = "podGroups"
    TOPOLOGIES = "topologies"
    PRIORITY_CLASSES = "priorityClasses"
    RUNTIME_CLASSES = "runtimeClasses"
    RUNTIMES = "runtimes"
    VOLUMES = "volumes"
    STORAGE_CLASSES = "storageClasses"
    CONFIG_MAPS = "configMaps"
    SECRETS = "secrets"
    SERVICE_ACCOUNTS = "serviceAccounts"
    NETWORKS = "networks"
    CLAIM_TEMPLATES = "claimTemplates"
    CLAIMS = "claims"
    DEVICE_CLASSES = "deviceClasses"
    IMAGES = "images"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Prerequisite:
    """One thing that objects refer to and do not bring along: its name, and `by` whom it is needed.

    What lives in a namespace is ``namespace/name``, a kind is ``group/Kind``, an image its whole reference.
    """

    category: Category
    name: str
    by: str


Provides: TypeAlias = Mapping[Category, tuple[str, ...]]
"""What a cluster is said to have, as names or globs. Of a category that is not in it nobody says anything."""
