"""The expansion of a template: its file, with the objects of its source in place of `spec.from`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reconciler.core.fleet.replica_paths import REPLICAS
from reconciler.core.fleet.sources.patches import check_patches
from reconciler.core.fleet.template import TemplateDraft, template_draft
from reconciler.core.safety import credentials
from reconciler.core.schema.egs.deploy import ManifestResourceFile, StepFile
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of, replica_fields
from reconciler.core.workloads.containers import container_summaries
from reconciler.core.workloads.paths import at, put
from reconciler.core.workloads.pods import pod_template_sites
from reconciler.errors import Severity
from reconciler.model.ids import CommitId
from reconciler.model.manifest_source import (
    ArgoCDSource,
    MadeFrom,
    ManifestSource,
    RepositorySource,
    SourceContent,
    SourceKey,
    UnreadSource,
    WorkloadSource,
)
from reconciler.model.policy import Fleet, Workspace
from reconciler.model.workload import Json, StepType
from reconciler.text.findings import Finding, shortened

FROM = ("spec", "from")
_PATCHES = ("spec", "patches")
_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST = 200
"""Characters of the images that a placement notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A template as it is deployed."""

    draft: TemplateDraft
    """With the objects of the source; where `unread` says why not, without them."""
    findings: tuple[Finding, ...] = ()
    """Problems of the template and its objects together; all of the source are at `FROM`."""
    made_from: MadeFrom | None = None
    unread: str = ""
    """Why nothing can be deployed from the source now, with the way out; empty where it can."""


def source_key(source: ManifestSource, workspace: Workspace) -> SourceKey:
    """Return a source as a workspace means it: a live object is on the primary."""
    return SourceKey(source, workspace.primary) if isinstance(source, WorkloadSource) else SourceKey(source)


def unreachable(source: ManifestSource, fleet: Fleet) -> UnreadSource | None:
    """Say that nothing leads to the cluster of Argo CD; None for other sources, and where something does."""
    if isinstance(source, ArgoCDSource) and fleet.argocd.connection is None:
        return UnreadSource(
            message="nothing says how Argo CD's own cluster is reached",
            remedy="say in the Fleet: spec.argocd.connection: {context: ...} or {inCluster: true}",
        )
    return None


def expand(
    draft: TemplateDraft,
    content: SourceContent | UnreadSource | None,
    commit: CommitId,
    kinds: Kinds,
    place: RepositorySource | None = None,
) -> Expansion:
    """Put the objects of a source into a template; None is a source that nobody has looked at yet.

    `commit` is the one of the source branch, `place` the source that an Application names. The replicas of the objects
    are those of each placement.
    """
    source, file = draft.source, draft.file
    if source is None or file is None:
        return Expansion(draft=draft)
    if content is None:
        return Expansion(draft=draft, unread=f"{source.title} has not been read yet (see `overspill plan`)")
    if isinstance(content, UnreadSource):
        severity = Severity.ERROR if source.in_repository else Severity.WARNING
        finding = Finding(loc=FROM, message=content.message, hint=content.remedy, severity=severity)
        return Expansion(draft=draft, findings=(finding,), unread=content.text)
    digest = _digest([with_share(manifest, kinds) for manifest in content.manifests])
    if parted := _parted(source, content, digest):
        return expand(draft, parted, commit, kinds)
    own, fixed = len(file.spec.manifest_resources), REPLICAS in file.metadata.annotations
    manifests = [manifest if fixed else with_share(manifest, kinds) for manifest in content.manifests]
    names = step_names(manifests, (resource.name for resource in draft.spec.manifests))
    made = [
        ManifestResourceFile(name=name, manifest=dict(manifest))
        for name, manifest in zip(names, manifests, strict=True)
    ]
    steps = [StepFile(name=name, type=StepType.MANIFEST) for name in names]
    spec = file.spec.model_copy(
        update={
            "from_": None,
            "patches": [],
            "manifest_resources": [*file.spec.manifest_resources, *made],
            "steps": [*file.spec.steps, *steps],
        }
    )
    whole, findings = template_draft(file.model_copy(update={"spec": spec}))
    spelling = replace(whole.spelling, sourced=tuple(names), own=own)
    whole = replace(whole, source=source, file=file, spelling=spelling, patches=draft.patches)
    findings = (*findings, *_credentials(manifests, own), *check_patches(whole.spec, whole.ref, draft.patches, kinds))
    told = tuple(spelling.of(finding) for finding in findings)
    text = (place or source).at_version(content.version or commit, digest)
    made_from = MadeFrom(text=text, digest=digest, images=_images(manifests, kinds))
    return Expansion(draft=whole, findings=told, made_from=made_from, unread=why_not_deployed(told))


def _parted(source: ManifestSource, content: SourceContent, digest: str) -> UnreadSource | None:
    """Say that a source has another version than the one that it is pinned to; None where it has not."""
    match source:
        case WorkloadSource(digest=pin):
            version = digest
        case RepositorySource(commit=pin) | ArgoCDSource(commit=pin):
            version = content.version
        case _:
            return None
    if pin in ("", version):
        return None
    way_out = "write that as spec.from.pin once it may be deployed elsewhere, or take the pin away"
    return UnreadSource(message=f"{source.title} is {version} now, and the template is pinned", remedy=way_out)


def is_of_source(finding: Finding) -> bool:
    """Return whether a finding is about what was read, or about patches of it: the file itself is good."""
    return finding.loc[:2] in (FROM, _PATCHES)


def why_not_deployed(findings: Iterable[Finding]) -> str:
    """Say which errors keep the objects of a source from being deployed; empty without any."""
    wrong = [finding for finding in findings if is_of_source(finding) and finding.severity is Severity.ERROR]
    return "; ".join(f"{finding.message}{f' ({finding.hint})' if finding.hint else ''}" for finding in wrong[:3])


def with_share(manifest: Mapping[str, Json], kinds: Kinds) -> dict[str, Json]:
    """Write the expression of the replicas where the kind has one field for them; other counts stay as they are."""
    paths = replica_fields(manifest, kinds)
    if len(paths) != 1:
        return dict(manifest)
    scaled: dict[str, Json] = put(manifest, paths[0], "{{ replicas }}")
    return scaled


def step_names(manifests: Iterable[Mapping[str, Json]], taken: Iterable[str] = ()) -> list[str]:
    """Name each object by its kind and name; names that are equal, or `taken`, are numbered."""
    names: list[str] = []
    used = {*taken}
    for manifest in manifests:
        name = _NAME.sub("-", f"{manifest.get('kind')}-{at(manifest, ('metadata', 'name'))}".casefold()).strip("-")[:60]
        name = name if name not in used else f"{name}-{len(used)}"
        used.add(name)
        names.append(name)
    return names


def _credentials(manifests: Iterable[Json], own: int) -> Iterable[Finding]:
    """Find credentials in the objects of a source, which would come into git."""
    for index, manifest in enumerate(manifests):
        yield from credentials.check_document(manifest, ("spec", "manifestResources", own + index, "manifest"))


def _digest(manifests: list[dict[str, Json]]) -> str:
    text = json.dumps(manifests, sort_keys=True, separators=(",", ":"), default=str)
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()}"


def _images(manifests: Iterable[Mapping[str, Json]], kinds: Kinds) -> str:
    """List the images of the containers of workloads."""
    pods = (
        at(manifest, tuple(map(str, site.loc)))
        for manifest in manifests
        if kind_of(manifest, kinds) is not None
        for site in pod_template_sites(manifest, kinds)
        if site.loc
    )
    images = (summary.image for pod in pods for summary in container_summaries(pod))
    return shortened(",".join(dict.fromkeys(image for image in images if image)), _LONGEST)
