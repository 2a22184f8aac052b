"""Warnings about what a template deploys: shares that a webhook refuses, builds that move, pods that nothing counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from reconciler.core.capacity.pod_requirements import takes_gpus
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.fleet.burst_replicas import manifest_of_share
from reconciler.core.fleet.workload_kinds import uncounted_pods
from reconciler.core.validation.admission.table import check_admission
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import pod_template_sites
from reconciler.errors import Severity
from reconciler.model.workload import DeploySpec, Json, WorkloadTemplate
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.wording import join_names

_SHARES = range(1, 33)
"""Shares that are tried, in replicas; of a percentage of more, none rounds to 0 or to other than its part."""
_MOST_IMAGES = 5
"""Images of one template that are told one by one."""
_PARTS = ("initContainers", "containers")


def warn_refused_shares(template: WorkloadTemplate, kinds: Kinds) -> Iterator[Finding]:
    """Warn of numbers of replicas with which a webhook would refuse the object that has them.

    Percentages of a share round to 0, and other numbers of the object are above it: LeaderWorkerSet's maxUnavailable,
    Kueue's least parallelism of a Job, the subsets of a UnitedDeployment. Large shares may be refused too: the name of
    a slice gets too long, or there are several slices beside a role that is scaled from outside. A placement of a
    number that is refused for sure is not committed. What is refused whatever the number is told of the object itself.
    """
    # Where the smallest and the largest share are let in, so are all between them.
    if not any(_refusals_of_share(template, replicas, kinds) for replicas in (_SHARES[0], _SHARES[-1])):
        return
    refused: dict[Loc, list[tuple[int, Finding]]] = {}
    for replicas in _SHARES:
        for finding in _refusals_of_share(template, replicas, kinds):
            refused.setdefault(finding.loc, []).append((replicas, finding))
    for found in refused.values():
        if len({replicas for replicas, _ in found}) == len(_SHARES) and found[0][1].message == found[-1][1].message:
            continue
        _, first = found[0]
        shares = join_names(_ranges(sorted({replicas for replicas, _ in found})))
        sure = first.severity is Severity.ERROR
        what = "is not committed" if sure else "may be refused"
        message = f"a placement of {shares} replicas {what}: {first.message}"
        yield Finding(loc=first.loc, message=message, hint=first.hint, severity=Severity.WARNING)


def _refusals_of_share(template: WorkloadTemplate, replicas: int, kinds: Kinds) -> tuple[Finding, ...]:
    """List what a webhook would refuse of the object with these replicas of a share; nothing where none has them."""
    share = manifest_of_share(template, replicas)
    if share is None:
        return ()
    index, manifest = share
    return tuple(check_admission(manifest, ("spec", "manifestResources", index, "manifest"), kinds, rendered=False))


def _ranges(numbers: list[int]) -> Iterator[str]:
    """Yield runs of whole numbers, as ``1 to 3``; one that ends with the last share that is tried is open."""
    for _, run in groupby(enumerate(numbers), lambda entry: entry[1] - entry[0]):
        members = [number for _, number in run]
        first, last = members[0], members[-1]
        yield f"{first} or more" if last == _SHARES[-1] else str(first) if first == last else f"{first} to {last}"


def warn_moving_images(spec: DeploySpec, kinds: Kinds) -> Iterator[Finding]:
    """Warn of images without a tag, or with ``latest``: a burst may run another build than home."""
    told = set[str]()
    for index, resource in enumerate(spec.manifests):
        for place, container in _containers(resource.manifest, kinds):
            image = container.get("image")
            if not isinstance(image, str) or not _moves(image) or image in told or len(told) == _MOST_IMAGES:
                continue
            told.add(image)
            yield Finding(
                loc=("spec", "manifestResources", index, "manifest", *place, "image"),
                message=f"{shortened(image)!r} is whatever build is the latest then: a burst may run another than home",
                hint="name a version as its tag, or a digest (@sha256:...)",
                severity=Severity.WARNING,
            )


def _moves(image: str) -> bool:
    """Return whether an image names no version: no digest, and no tag other than ``latest``."""
    if not image or has_expression(image) or "@" in image:
        return False
    _, _, tag = image.rpartition("/")[2].partition(":")
    return tag in ("", "latest")


def warn_uncounted_pods(spec: DeploySpec, kinds: Kinds) -> Iterator[Finding]:
    """Warn of objects whose pods are not counted, where they take GPUs or nothing beside them is counted."""
    found = [(index, item, kind_of(item.manifest, kinds)) for index, item in enumerate(spec.manifests)]
    alone = not spec.helm and not any(kind is not None and kind.counted and kind.templates for _, _, kind in found)
    for index, resource, kind in found:
        if kind is None or kind.counted:
            continue
        with_gpus = takes_gpus(spec, resource, kinds)
        if not (alone or with_gpus):
            continue
        name = shortened(str(resource.manifest.get("kind")))
        takes = ", nor are the GPUs that they take" if with_gpus else ""
        yield Finding(
            loc=("spec", "manifestResources", index, "manifest", "kind"),
            message=f"a {name} makes {uncounted_pods(kind)}, however many are missing: its pods are not counted{takes}",
            hint="burst a Deployment or a Job, and let each cluster's own repository have this object",
            severity=Severity.WARNING,
        )


def _containers(manifest: Mapping[str, Json], kinds: Kinds) -> Iterator[tuple[Loc, Mapping[str, Json]]]:
    """Yield each container of the pods of an object with its place, once."""
    seen = set[Loc]()
    for site in pod_template_sites(manifest, kinds):
        if not site.loc or site.loc in seen:
            continue
        seen.add(site.loc)
        pod = at(manifest, tuple(map(str, site.loc)))
        for part in _PARTS:
            listed = pod.get(part) if isinstance(pod, Mapping) else None
            for index, container in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(container, Mapping):
                    yield (*site.loc, part, index), container
