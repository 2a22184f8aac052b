"""Files of plain manifests as the content of a source: what ``kubectl apply -f`` takes, and nothing to be rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.fleet.file import ParsedFile
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.schema import KindSupport, kind_verdict, yaml
from reconciler.core.workloads.api_kinds import cluster_scoped, group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.portable_object import quoted
from reconciler.errors import InvalidInput
from reconciler.model.ids import BlobId
from reconciler.model.manifest_source import PathSource, RepositorySource, SourceContent, UnreadSource
from reconciler.model.tree import EntryType, TreeEntry
from reconciler.model.workload import Json
from reconciler.text.file_names import may_hold_objects
from reconciler.text.wording import join_names

MOST_FILES = 100
"""Files of one source; a workload has a handful."""
_RENDERED = {"kustomization.yaml": "kustomize", "kustomization.yml": "kustomize", "Chart.yaml": "Helm"}
"""Files that say that another program renders the directory."""
_LAST = frozenset({"Service"})
_KINDS = frozenset(kind.kind for kind in BUILT_IN.values())


def in_source(path: str, name: str, *, recurse: bool = True) -> bool:
    """Return whether a file is of a source: the file itself, or below the directory, at any depth with `recurse`."""
    directory = f"{path}/" if path else ""
    if name == path or not name.startswith(directory):
        return name == path
    within = name.removeprefix(directory)
    return (recurse or "/" not in within) and (may_hold_objects(name) or name.rpartition("/")[2] in _RENDERED)


def path_sources(files: Iterable[ParsedFile]) -> frozenset[PathSource]:
    """Return the sources of templates that lie in the fleet repository itself."""
    return frozenset(
        declared.value.source
        for file in files
        for declared in file.objects
        if isinstance(declared.value, TemplateDraft) and isinstance(declared.value.source, PathSource)
    )


def read_source(
    source: PathSource | RepositorySource,
    entries: Iterable[TreeEntry],
    read: Callable[[Iterable[BlobId]], Mapping[BlobId, bytes]],
    version: str,
) -> SourceContent | UnreadSource:
    """Read the files of a source in a tree, whose entries have sizes; none of one that is too large is read.

    `entries` include links and submodules: one in the place of manifests is an error, as no manifest is deleted by it.
    """
    recurse, namespace = True, ""
    if isinstance(source, RepositorySource):
        recurse, namespace = source.recurse, source.namespace
    entries = tuple(entries)
    for entry in entries:
        if obstacle := _obstacle(source.path, entry, recurse=recurse):
            return UnreadSource(message=obstacle, remedy="commit the manifests in its place, or delete it")
    own = [entry for entry in entries if in_source(source.path, entry.path, recurse=recurse)]
    for entry in own:
        if entry.size > yaml.MAX_BYTES:
            message = f"{entry.path} {yaml.too_large(entry.path, entry.size).message}"
            return UnreadSource(message=message, remedy="split it, or name the manifests alone")
    contents = {} if len(own) > MOST_FILES else read(entry.blob for entry in own)
    files = {entry.path: contents.get(entry.blob, b"") for entry in own}
    return _in_namespace(plain_manifests(source.title, files, version), namespace)


def _obstacle(path: str, entry: TreeEntry, *, recurse: bool) -> str:
    """Say what stands where manifests of a source are meant to be; empty where nothing does."""
    directory = f"{path}/" if path else ""
    above = path == entry.path or path.startswith(f"{entry.path}/")
    if not (above or entry.path.startswith(directory)):
        return ""
    *folders, name = entry.path.removeprefix(directory).split("/")
    if entry.type is EntryType.FILE:
        named = next((at for at, folder in enumerate(folders) if may_hold_objects(folder)), None)
        if above or named is None or (named and not recurse):
            return ""
        return f"{directory}{'/'.join(folders[: named + 1])} is a directory"
    # A link with another ending is no manifest, and one without an ending may be a directory of them.
    meant = may_hold_objects(name) or (recurse and "." not in name)
    if not above and (not meant or (folders and not recurse)):
        return ""
    kind = "is a submodule, whose files are not read"
    return f"{entry.path} {'is a symbolic link, which is not followed' if entry.type is EntryType.LINK else kind}"


def plain_manifests(title: str, files: Mapping[str, bytes], version: str) -> SourceContent | UnreadSource:
    """Read the objects of the files of a source, by path; those that pods need come first, and Services last."""
    if not files:
        return UnreadSource(message=f"no manifest lies at {title}", remedy="mend spec.from, or add the manifests")
    if len(files) > MOST_FILES:
        return UnreadSource(
            message=f"{len(files)} files lie at {title}, and a source has {MOST_FILES} at most",
            remedy="name the directory of the one workload",
        )
    programs = {_RENDERED[name] for path in files if (name := path.rpartition("/")[2]) in _RENDERED}
    if programs:
        return UnreadSource(
            message=f"{title} is rendered by {join_names(sorted(programs))}, and sources are plain manifests",
            remedy="commit what it renders, or name a workload that runs: from.workload",
        )
    manifests: list[dict[str, Json]] = []
    for path, data in sorted(files.items()):
        try:
            documents = yaml.parse(data, path)
        except InvalidInput as error:
            return UnreadSource(message=str(error), remedy="mend the file")
        before = len(manifests)
        for document in documents:
            for value in _objects(document.value):
                if problem := _problem(value):
                    return UnreadSource(message=f"{path}:{document.start}: {problem}", remedy="mend the file")
                manifests.append({key: quoted(item) for key, item in value.items()})
        if len(manifests) == before:
            return UnreadSource(
                message=f"{path} {'holds no object' if data.strip() else 'is empty'}",
                remedy="delete the file if its objects are to go",
            )
    return SourceContent(manifests=tuple(sorted(manifests, key=_turn)), version=version)


def _in_namespace(content: SourceContent | UnreadSource, namespace: str) -> SourceContent | UnreadSource:
    """Write a namespace into the objects that name none and need one; an empty one changes nothing."""
    if isinstance(content, UnreadSource) or not namespace:
        return content
    manifests = (
        manifest
        if manifest["metadata"].get("namespace") or cluster_scoped(group_kind(manifest))
        else {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
        for manifest in content.manifests
    )
    return replace(content, manifests=tuple(manifests))


def _objects(value: Json) -> Iterator[Json]:
    """Yield the objects of a document; an empty one has none."""
    if isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        yield from value["items"]
    elif value is not None:
        yield value


def _problem(value: Json) -> str:
    """Say why a value is no manifest; empty for a manifest."""
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("apiVersion", "kind")):
        return "is no object with apiVersion and kind"
    if not isinstance(value.get("metadata"), dict) or not isinstance(value["metadata"].get("name"), str):
        return f"{value['kind']} has no metadata.name"
    if kind_verdict(value["apiVersion"], value["kind"]).support is not KindSupport.FOREIGN:
        return f"{value['kind']} is a kind of Overspill, and no manifest of a workload"
    return ""


def _turn(manifest: Mapping[str, Json]) -> int:
    """Rank an object: what pods need, then workloads, then what selects them."""
    if manifest["kind"] in _LAST:
        return 2
    return 1 if manifest["kind"] in _KINDS else 0
