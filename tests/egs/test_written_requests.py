"""Whatever request is written as EGS's resource or as its interface answers reads back as the same request."""

from __future__ import annotations

import json
from datetime import timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.api.routes.placements import read_create
from reconciler.core.schema import yaml
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.egs.resource import document, read_request, rest_document
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.request import Request
from reconciler.model.workload import (
    Command,
    DeletionPolicy,
    DeploySpec,
    HelmConfig,
    HelmFlags,
    ManifestResource,
    Step,
    StepType,
)
from tests.builders.requests import request as asked

NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
DURATIONS = st.integers(1, 10**7).map(lambda count: timedelta(seconds=count))
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12).filter(
    lambda text: "{" not in text
)
LEAVES = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXTS
VALUES = st.dictionaries(NAMES, st.recursive(LEAVES, lambda some: st.lists(some, max_size=3), max_leaves=5), max_size=3)
CLUSTERS = st.lists(NAMES, unique=True, max_size=3).map(tuple)

charts = st.builds(
    HelmConfig,
    name=NAMES,
    chart=NAMES,
    release_name=NAMES,
    release_namespace=NAMES,
    repo_name=NAMES | st.just(""),
    repo_url=st.sampled_from(["", "https://charts.example.com", "oci://a/b"]),
    version=st.sampled_from(["", "1.2.3"]),
    values=VALUES,
    secret_ref=NAMES | st.just(""),
    flags=st.builds(
        HelmFlags,
        atomic=st.booleans(),
        cleanup_on_fail=st.booleans(),
        create_namespace=st.booleans(),
        skip_crds=st.booleans(),
        wait=st.booleans(),
        timeout=st.none() | DURATIONS,
    ),
)


@st.composite
def objects(draw: st.DrawFn) -> ManifestResource:
    name = draw(NAMES)
    metadata = {"name": draw(st.just(name) | NAMES)} | draw(st.sampled_from([{}, {"namespace": "a"}, {"labels": {}}]))
    rest_of_it = draw(st.sampled_from([{}, {"data": {"a": "b"}}, {"spec": {"replicas": 1}}, {"name": "odd"}]))
    head = {"apiVersion": "v1", "kind": draw(st.sampled_from(["ConfigMap", "Pod"]))}
    return ManifestResource(name=name, manifest={**head, "metadata": metadata, **rest_of_it})


@st.composite
def specs(draw: st.DrawFn) -> DeploySpec:
    def unique(strategy):
        return tuple(draw(st.lists(strategy, max_size=2, unique_by=lambda part: part.name)))

    helm, manifests = unique(charts), unique(objects())
    commands = unique(st.builds(Command, name=NAMES, cmd=st.just("kubectl get pods")))
    if not (helm or manifests or commands):
        commands = (Command(name="look", cmd="kubectl get pods"),)
    steps = [
        Step(name=part.name, type=kind)
        for kind, parts in ((StepType.HELM, helm), (StepType.MANIFEST, manifests), (StepType.COMMAND, commands))
        for part in parts
    ]
    return DeploySpec(
        helm=helm,
        manifests=manifests,
        commands=commands,
        steps=tuple(draw(st.permutations(steps))),
        burst_duration=draw(st.none() | DURATIONS),
        deletion_policy=draw(st.sampled_from(DeletionPolicy)),
        service_account=draw(NAMES | st.just("")),
    )


@st.composite
def asks(draw: st.DrawFn) -> GpuAsk:
    shape, kind = draw(st.sampled_from([("", ""), ("H100", "p5")]))
    counts = st.integers(1, 100)
    memory = draw(st.just(0) | counts)
    return GpuAsk(gpus=draw(counts), nodes=draw(counts), memory=memory, shape=shape, instance_type=kind)


@st.composite
def terms(draw: st.DrawFn) -> GprTerms:
    idle = draw(st.none() | DURATIONS)
    return GprTerms(
        priority=draw(st.integers(1, 300)),
        exit_duration=draw(st.none() | DURATIONS),
        idle=idle,
        enforce_idle=idle is not None and draw(st.booleans()),
        evictable=draw(st.booleans()),
        requeue=draw(st.booleans()),
        dedicated=draw(st.booleans()),
    )


@st.composite
def placements(draw: st.DrawFn) -> Request:
    """Draw a placement that admission could have made."""
    clusters = draw(CLUSTERS)
    return Request(
        name=draw(NAMES),
        workspace=draw(NAMES),
        namespace=draw(NAMES | st.just("")),
        spec=draw(specs()),
        clusters=clusters,
        placements=draw(st.integers(1, 3) | st.none() if clusters else st.integers(1, 3)),
        template=draw(NAMES | st.just("")),
        ask=draw(st.none() | asks()),
        terms=draw(terms()),
        redistributes=draw(st.booleans()),
    )


@st.composite
def reservations(draw: st.DrawFn) -> Request:
    """Draw a reservation that admission could have made."""
    return Request(
        name=draw(NAMES),
        workspace=draw(NAMES),
        namespace=draw(NAMES | st.just("")),
        spec=DeploySpec(),
        clusters=draw(CLUSTERS),
        placements=1,
        ask=draw(asks()),
        terms=draw(terms()),
    )


@given(placements() | reservations())
def test_a_resource_reads_back_as_the_request_that_it_was_written_from(request):
    (read,) = yaml.parse(yaml.emit(document(request)).encode(), "x.yaml")
    assert read_request(read.value) == request


@given(placements())
@example(asked("worker-2", namespace="", terms=GprTerms()))
@example(asked("worker-2", namespace="", terms=GprTerms(requeue=True)))
def test_an_answer_posted_again_is_the_same_request(request):
    draft = read_create(json.loads(json.dumps(rest_document(request))))
    assert isinstance(draft, RequestDraft)
    assert draft.request(request.workspace).settled == Request(
        **{name: getattr(request, name) for name in Request.__slots__} | {"namespace": ""}
    )


@given(placements() | reservations())
def test_whatever_status_stands_beside_it_a_resource_reads_back(request):
    status = {"provisioningStatus": "Completed", "message": "its time was up"}
    assert read_request({**document(request), "status": status}) == request


def test_a_resource_that_lost_its_workspace_is_refused():
    whole = document(
        Request(name="a", workspace="llm", namespace="", spec=DeploySpec(), ask=GpuAsk(gpus=1), clusters=("b",))
    )
    assert whole["kind"] == "GPUProvisioningRequest"
    del whole["spec"]["sliceName"]
    (found,) = read_request(whole)
    assert (found.loc, found.message) == (("spec", "sliceName"), "is required")
