"""The grants of a bootstrap to placements, so that two bootstraps can be compared.

A grant is one line for the admin who applies them: a destination, a kind, a repository, a verb of an account. Objects
are read as they were printed or as ``kubectl get -o yaml`` prints them from a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.core.engines.permissions import ENFORCED
from reconciler.core.pods.pod_references import as_list
from reconciler.core.workloads.paths import at
from reconciler.model.policy import PodSecurity
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

_LONGEST = 200
"""Characters of one line."""
_KIND, _CLUSTER, _EVERY = "kind ", " of the whole cluster", "every kind within namespaces"


def grants(documents: Iterable[Json]) -> frozenset[str]:
    """Return the grants of objects; objects that grant nothing are left out."""
    return frozenset(shortened(grant, _LONGEST) for document in documents for grant in _of(document))


def beyond(before: frozenset[str], after: frozenset[str]) -> tuple[str, ...]:
    """List the grants of `after` that `before` does not cover."""
    return tuple(sorted(grant for grant in after - before if not _covers(grant, before)))


def widening(before: frozenset[str], after: frozenset[str], since: str) -> str:
    """Write as comments what is granted beyond an earlier bootstrap, and what no longer is."""
    more, fewer = beyond(before, after), sorted(before - after)
    if not more and not fewer:
        return f"# It grants what {since} granted, no more and no less.\n"
    lines = [f"# Granted beyond {since}:\n", *(f"#   + {grant}\n" for grant in more)] if more else []
    if fewer:
        lines += [f"# Granted by {since} and no longer:\n", *(f"#   - {grant}\n" for grant in fewer)]
    return "".join(lines)


def _covers(grant: str, before: frozenset[str]) -> bool:
    """Return whether every kind but those of other groups was granted before, as an AppProject without a list does."""
    group = grant.removeprefix(_KIND).partition("/")[0]
    every = [earlier for earlier in before if earlier.startswith(_EVERY)]
    return (
        grant.startswith(_KIND) and not grant.endswith(_CLUSTER) and any(f" {group}/" not in other for other in every)
    )


def _of(document: Json) -> Iterator[str]:
    """Yield the grants of one object, or of the items of a List."""
    if not isinstance(document, Mapping):
        return
    for item in as_list(document.get("items")):
        yield from _of(item)
    match document.get("kind"):
        case "AppProject":
            yield from _project(document)
        case "Role" | "ClusterRole":
            yield from _role(document)
        case "RoleBinding" | "ClusterRoleBinding":
            yield from _binding_rules(document)
        case "Namespace":
            level = at(document, ("metadata", "labels", ENFORCED)) or PodSecurity.PRIVILEGED
            for lower in [*PodSecurity][[*PodSecurity].index(level) if level in [*PodSecurity] else 0 :]:
                yield f"namespace {at(document, ('metadata', 'name'))}: pods of level {lower}"


def _project(document: Mapping[str, Json]) -> Iterator[str]:
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        return
    for repository in as_list(spec.get("sourceRepos")):
        yield f"source {repository}"
    for place in _mappings(spec.get("destinations")):
        yield f"destination {place.get('name') or place.get('server')}, namespace {place.get('namespace')}"
    for kind in _mappings(spec.get("clusterResourceWhitelist")):
        named = f" {kind['name']}" if kind.get("name") else ""
        yield f"{_KIND}{kind.get('group', '')}/{kind.get('kind', '')}{named}{_CLUSTER}"
    for kind in _mappings(spec.get("namespaceResourceWhitelist")):
        yield f"{_KIND}{kind.get('group', '')}/{kind.get('kind', '')}"
    if not spec.get("namespaceResourceWhitelist"):
        withheld = _mappings(spec.get("namespaceResourceBlacklist"))
        but = ", ".join(f"{kind.get('group', '')}/{kind.get('kind', '')}" for kind in withheld)
        yield f"{_EVERY}{f' but {but}' if but else ''}"


def _role(document: Mapping[str, Json]) -> Iterator[str]:
    name = _name(document)
    for rule in _mappings(document.get("rules")):
        verbs = ", ".join(map(str, as_list(rule.get("verbs"))))
        named = as_list(rule.get("resourceNames"))
        for group in as_list(rule.get("apiGroups")):
            for resource in as_list(rule.get("resources")):
                for only in named or [None]:
                    what = f"{group}/{resource}" if group else f"{resource}"
                    yield f"{name}: {verbs} {what}{f' {only}' if only is not None else ''}"


def _binding_rules(document: Mapping[str, Json]) -> Iterator[str]:
    role = f"{at(document, ('roleRef', 'kind'))} {at(document, ('roleRef', 'name'))}"
    namespace = at(document, ("metadata", "namespace"))
    where = f"in namespace {namespace}" if namespace else "in the whole cluster"
    for subject in _mappings(document.get("subjects")):
        who = "/".join(str(subject[part]) for part in ("namespace", "name") if subject.get(part))
        yield f"{subject.get('kind')} {who}: {role} {where}"


def _name(document: Mapping[str, Json]) -> str:
    namespace = at(document, ("metadata", "namespace"))
    return f"{document['kind']} {f'{namespace}/' if namespace else ''}{at(document, ('metadata', 'name'))}"


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    return [item for item in as_list(value) if isinstance(item, Mapping)]
