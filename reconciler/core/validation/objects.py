"""The check of one object as a whole: whether its kind exists, and whether its fields are those of the kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.validation import kubernetes
from reconciler.core.validation.pod_rules import RULES, check_labels
from reconciler.core.validation.resource_names import check_resource_names
from reconciler.core.validation.rules import RuleJudgement, check_rules
from reconciler.core.validation.values import Judgement, check_value
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.held_objects import with_wrapped
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import pod_template_sites
from reconciler.errors import Severity
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, FieldValidation, ObjectSchemas, Schema
from reconciler.model.workload import DeploySpec, Json
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import closest, nearest

_CLOSE_GROUP = 0.9
"""How alike a misspelt API group is. Groups of custom kinds end as those of Kubernetes do."""


def check_object(
    manifest: Mapping[str, Json], loc: Loc, schemas: ObjectSchemas, kinds: Kinds, *, rendered: bool
) -> tuple[Finding, ...]:
    """Return what the API server of a cluster would refuse in an object, unknown fields included.

    Of a kind without a schema, its metadata are checked and the pods that one of the `kinds` finds in it. An object
    whose kind is an expression is checked once it is `rendered`.
    """
    version, kind = _header(manifest)
    if not rendered and has_expression(version + kind):
        return ()
    # Two pod templates of a kind may be read at one place, as those of a LeaderWorkerSet.
    findings = tuple(dict.fromkeys(_check(manifest, loc, schemas, kinds, Judgement(rendered=rendered))))
    if schemas.field_validation is FieldValidation.WARN:
        return tuple(replace(finding, severity=Severity.WARNING) for finding in findings)
    return findings


def check_types(manifest: Mapping[str, Json]) -> tuple[Finding, ...]:
    """Return the fields of an object, as an API server printed it, that have another type than Kubernetes gives them.

    Unknown fields and words pass: the server may be newer. Of a custom kind the metadata are checked. The core group
    has one version, so that none of its kinds goes unchecked by naming another.
    """
    if "/" not in _header(manifest)[0] and (finding := unknown_kind(manifest, (), NO_SCHEMAS)):
        return (finding,)
    judgement = Judgement(rendered=True, partial=True, types_alone=True)
    header = Schema(type="string")
    schema = kubernetes.kind_schema(*_header(manifest)) or Schema(
        type="object",
        fields={"apiVersion": header, "kind": header, "metadata": kubernetes.definition(kubernetes.OBJECT_META)},
    )
    return check_value(manifest, schema, (), judgement)


def unchecked_kinds(specs: Iterable[DeploySpec], schemas: ObjectSchemas, declared: Kinds) -> tuple[str, ...]:
    """List the kinds in these specs that have no schema, as ``apiVersion Kind``, each once and sorted.

    Kinds of wrapped objects are among them; `declared` are the WorkloadKinds of the fleet repository.
    """
    headers = {
        _header(manifest)
        for spec in specs
        for resource in spec.manifests
        for manifest in with_wrapped(resource.manifest, declared)
    }
    return tuple(
        f"{version} {kind}"
        for version, kind in sorted(headers)
        if not has_expression(version + kind)
        and f"{version.rpartition('/')[0]}/{kind}" not in schemas.custom
        and kubernetes.kind_schema(version, kind) is None
    )


def _header(manifest: Mapping[str, Json]) -> tuple[str, str]:
    return str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))


def _check(
    manifest: Mapping[str, Json], loc: Loc, schemas: ObjectSchemas, kinds: Kinds, judgement: Judgement
) -> Iterator[Finding]:
    schema = _schema(manifest, schemas)
    # 1. No cluster has the kind, or not in this version.
    if finding := unknown_kind(manifest, loc, schemas):
        yield finding
        return
    # 2. A schema says what may stand in it.
    if schema is not None:
        yield from check_value(manifest, schema, loc, judgement)
    # 3. Nothing but its metadata is known of a custom kind without a schema.
    else:
        metadata = kubernetes.definition(kubernetes.OBJECT_META)
        yield from check_value(manifest.get("metadata"), metadata, (*loc, "metadata"), judgement)
    is_custom = schema is None or group_kind(manifest) in schemas.custom
    rule_judgement = RuleJudgement(
        rendered=judgement.rendered, partial=is_custom, claims=_claims(manifest, rendered=judgement.rendered)
    )
    if schema is not None and not is_custom:
        yield from check_rules(RULES, manifest, schema, loc, rule_judgement)
    for site in pod_template_sites(manifest, kinds):
        pod = at(manifest, tuple(map(str, site.loc))) if site.loc else None
        if not isinstance(pod, dict):
            continue
        if schema is None:
            # A controller completes the pods, so that nothing is required of them.
            pod_schema = _pod_schema(is_open=bool(site.template.containers))
            yield from check_value(pod, pod_schema, (*loc, *site.loc), replace(judgement, partial=True))
        yield from check_resource_names(pod, (*loc, *site.loc), schemas.resources)
        if is_custom:
            pod_schema = kubernetes.definition(kubernetes.POD_SPEC)
            yield from check_rules(RULES, pod, pod_schema, (*loc, *site.loc), rule_judgement)
            labels: Loc = (*site.loc[:-1], "metadata", "labels")
            yield from check_labels(at(manifest, tuple(map(str, labels))), (*loc, *labels), rule_judgement)


def _claims(manifest: Mapping[str, Json], *, rendered: bool) -> frozenset[str] | None:
    """Return the names of the claim templates of an object, which are volumes of its pods; None where they are open."""
    templates = at(manifest, ("spec", "volumeClaimTemplates"))
    if isinstance(templates, str) and not rendered:
        return None
    names = [at(item, ("metadata", "name")) for item in (templates if isinstance(templates, list) else ())]
    texts = frozenset(name for name in names if isinstance(name, str))
    return None if not rendered and any(map(has_expression, texts)) else texts


def _schema(manifest: Mapping[str, Json], schemas: ObjectSchemas) -> Schema | None:
    """Return the schema of an object's kind and version; None where there is none."""
    version, kind = _header(manifest)
    custom = schemas.custom.get(group_kind(manifest))
    return kubernetes.kind_schema(version, kind) if custom is None else custom.versions.get(version.partition("/")[2])


def _pod_schema(*, is_open: bool) -> Schema:
    """Return the schema of a pod spec; some kinds have further containers in fields beside it."""
    schema = kubernetes.definition(kubernetes.POD_SPEC)
    return replace(schema, is_open=True) if is_open else schema


def unknown_kind(manifest: Mapping[str, Json], loc: Loc, schemas: ObjectSchemas) -> Finding | None:
    """Report a kind that no cluster has under its apiVersion; None for one that a cluster may have."""
    if _schema(manifest, schemas) is not None:
        return None
    version, kind = _header(manifest)
    custom = schemas.custom.get(group_kind(manifest))
    builtin = kubernetes.kinds_of_kubernetes()
    group, _, _ = version.rpartition("/")
    # 1. A CustomResourceDefinition has other versions of it.
    if custom is not None:
        versions = [f"{custom.group}/{name}" for name in custom.versions]
        message = f"{kind} has no version {shortened(version)}"
        return Finding(loc=(*loc, "apiVersion"), message=message, hint=nearest(version, versions))
    groups = {name.rpartition("/")[0] for name, _ in builtin}
    versions = sorted((name for name, builtin_kind in builtin if builtin_kind == kind), key=_preference)
    # 2. The kind is one of Kubernetes', in another group or version.
    if versions and (group in groups or "." not in group or _resembles(group, versions)):
        message = f"Kubernetes {kubernetes.VERSION} has no {kind} in {shortened(version)}"
        return Finding(loc=(*loc, "apiVersion"), message=message, hint=f"try '{versions[0]}'")
    # 3. The group is one of Kubernetes', and has no such kind.
    if group in groups:
        names = {builtin_kind for name, builtin_kind in builtin if name.rpartition("/")[0] == group}
        message = f"Kubernetes {kubernetes.VERSION} has no kind {shortened(kind)} in {shortened(version)}"
        return Finding(loc=(*loc, "kind"), message=message, hint=nearest(kind, names))
    # 4. Groups of custom kinds have a dot.
    if "." not in group:
        message = f"Kubernetes {kubernetes.VERSION} has no group {shortened(group)}"
        return Finding(loc=(*loc, "apiVersion"), message=message, hint=nearest(group, groups - {""}))
    return None


def _preference(version: str) -> tuple[bool, bool, str]:
    """Order the apiVersions of a kind: stable before beta, workloads' own groups before others."""
    return "alpha" in version or "beta" in version, "/" in version, version


def _resembles(group: str, versions: list[str]) -> bool:
    """Return whether a group is a misspelt group of these apiVersions."""
    groups = [version.rpartition("/")[0] for version in versions]
    return bool(closest(group, groups, cutoff=_CLOSE_GROUP))
