"""Sources that templates are made from in place of objects of their own, and what was read from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from reconciler.model.ids import ClusterName


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSource:
    """A file or a directory of plain manifests in the fleet repository."""

    path: str
    commit: str = ""
    """The commit that it is read at; empty for the source commit of the pass."""

    @property
    def title(self) -> str:
        """The source in messages."""
        return self.path

    @property
    def in_repository(self) -> bool:
        """Whether it is read with the files of the fleet repository, so that its trouble is an error of them."""
        return True

    def at_version(self, commit: str, digest: str) -> str:  # noqa: ARG002 -- of files the commit is the version
        """Write what was read, for records and trailers."""
        return f"{commit}:{self.path}" if commit else self.path


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Companion:
    """A live object beside a workload that placements of it take along: a ConfigMap or a Service."""

    kind: str
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """The object in messages."""
        return f"{self.kind} {self.namespace}/{self.name}"

    def is_meant(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether an object is this one."""
        metadata = manifest["metadata"]
        named = manifest["apiVersion"], manifest["kind"], metadata.get("namespace"), metadata["name"]
        return named == ("v1", self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSource:
    """A live object on the primary cluster of the template's workspace."""

    kind: str
    group: str
    """Its API group; empty for the core group."""
    namespace: str
    """Empty for an object without one."""
    name: str
    companions: tuple[Companion, ...] = ()
    """Objects of its namespace that come along as they are there; sorted, each once."""
    digest: str = ""
    """The only version that may be deployed; empty for the one that is there."""

    @property
    def title(self) -> str:
        """The source in messages."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def in_repository(self) -> bool:
        """Whether it is read with the files of the fleet repository, so that its trouble is an error of them."""
        return False

    def at_version(self, commit: str, digest: str) -> str:  # noqa: ARG002 -- of live objects the digest is the version
        """Write what was read, for records and trailers."""
        return f"{self.kind}/{self.namespace}/{self.name}@{digest}"

    def is_meant(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether an object is this one."""
        metadata = manifest["metadata"]
        group = str(manifest["apiVersion"]).rpartition("/")[0]
        return (manifest["kind"], group, metadata.get("namespace") or "", metadata["name"]) == (
            self.kind,
            self.group,
            self.namespace,
            self.name,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositorySource:
    """A file or a directory of plain manifests in another repository."""

    url: str
    """Without a password."""
    revision: str
    """The branch; empty where a commit is read."""
    path: str
    """Empty for the whole repository."""
    commit: str = ""
    """The only version that may be deployed; empty for the one that is there."""
    at: str = ""
    """The commit that is read, whatever branch it is on, as Argo CD names it; empty for the newest of the branch."""
    recurse: bool = True
    """Whether directories in the directory count."""
    namespace: str = ""
    """The namespace of objects that name none; empty for that of their placement."""

    @property
    def title(self) -> str:
        """The source in messages."""
        return f"{self.path or 'the root'} of {self.url}"

    @property
    def in_repository(self) -> bool:
        """Whether it is read with the files of the fleet repository, so that its trouble is an error of them."""
        return False

    def at_version(self, commit: str, digest: str) -> str:  # noqa: ARG002 -- a commit is the version
        """Write what was read, for records and trailers."""
        return f"{self.url}@{commit}:{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgoCDSource:
    """An Application of Argo CD, which says what of which repository runs on the primary cluster."""

    name: str
    """Its name, in the namespace of Argo CD."""
    commit: str = ""
    """The only version that may be deployed; empty for the one that is there."""

    @property
    def title(self) -> str:
        """The source in messages."""
        return f"Application {self.name}"

    @property
    def in_repository(self) -> bool:
        """Whether it is read with the files of the fleet repository, so that its trouble is an error of them."""
        return False

    def at_version(self, commit: str, digest: str) -> str:
        """Raise AssertionError: what is read and recorded is the `RepositorySource` that it names."""
        raise AssertionError(f"{self.title} is recorded as the repository that it names, not at {commit} {digest}")


ManifestSource: TypeAlias = PathSource | WorkloadSource | RepositorySource | ArgoCDSource
"""Where the objects of a template come from."""


class SourceKey(NamedTuple):
    """A source as one workspace means it."""

    source: ManifestSource
    cluster: ClusterName = ClusterName("")
    """The primary cluster that a live object is on; empty for sources that are on none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContent:
    """What was read from a source."""

    manifests: tuple[Mapping[str, Any], ...]
    """Objects with braces as text; those that pods need come first."""
    version: str
    """The commit that they were read at; empty for live objects, which their digest tells apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadSource:
    """Why a source cannot be read now."""

    message: str
    remedy: str

    @property
    def text(self) -> str:
        """The reason with its way out."""
        return f"{self.message} ({self.remedy})"


SourceContents: TypeAlias = Mapping[SourceKey, SourceContent | UnreadSource | RepositorySource]
"""What is known of sources; of an Application, the source in another repository that it names."""

DeployedSources: TypeAlias = Mapping[str, RepositorySource | UnreadSource]
"""What Applications have deployed, each by its name: a path of a repository at a commit."""

RepositoryContents: TypeAlias = Mapping[RepositorySource, SourceContent | UnreadSource]
"""What was read from other repositories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFrom:
    """What a template was made from, as placements and commits pin it."""

    text: str
    """The source and its version: ``<commit>:apps/vllm``, ``Deployment/serving/vllm@sha256-...``."""
    digest: str
    """Digest of the objects, without their replicas and patches."""
    images: str = ""
    """The images of its containers, separated by commas; empty where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPatch:
    """A change of one object of a template on some clusters."""

    clusters: tuple[ClusterName, ...] = ()
    """Empty for all with the labels."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels that a Cluster has to have."""
    patch: Mapping[str, Any]
    """A part of the object; ``kind`` and ``metadata.name`` choose it, and both may be left out."""

    def applies_to(self, name: ClusterName, labels: Mapping[str, str]) -> bool:
        """Return whether a cluster of this name and with these labels gets the change."""
        return (not self.clusters or name in self.clusters) and set(self.labels) <= labels.items()
