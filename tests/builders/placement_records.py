"""The placement of docs/reference/commits.md, and strategies for placements of every kind."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from reconciler.core.ledger.placement_record import digest, write_placement
from reconciler.model.capacity import DeviceOption, DeviceRequest, ReplicaShape
from reconciler.model.ids import ClusterName, CommitId, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.placement import Origin, Placement, Restraint, RestraintKind
from reconciler.model.policy import EngineName
from reconciler.model.units import ONE, Quantity, Resources
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

START = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
SOURCE = CommitId("8d0c" * 10)
VLLM = WorkloadId(WorkspaceName("llm"), TemplateName("vllm"))
H100 = {"nvidia.com/gpu.product": "H100"}

PLACEMENT = Placement(
    name=PlacementName("vllm-7f3a90c1"),
    cluster=ClusterName("worker-2"),
    workload=VLLM,
    replicas=3,
    created_at=START,
    changed_at=START,
    expires_at=START + timedelta(minutes=10),
    engine=EngineName.ARGOCD,
    policy="spill",
    deletion_policy=DeletionPolicy.DELETE,
    source_commit=SOURCE,
    namespace="kubeslice-avesha",
    target_namespace="vllm-demo",
    shape=ReplicaShape(requests=Resources(amounts={"nvidia.com/gpu": ONE}), node_selector=H100),
    digest="sha256-3b1c",
    template_version="5b1e9f2c04aa",
)

SPEC = DeploySpec(
    helm=(
        HelmConfig(
            name="vllm-app",
            chart="vllm/vllm-stack",
            release_name="vllm",
            release_namespace="vllm-demo",
            repo_name="vllm",
            repo_url="https://vllm-project.github.io/production-stack",
            version="0.1.7",
            values={"servingEngineSpec": {"modelSpec": [{"name": "llama3", "replicaCount": 3, "requestGPU": 1}]}},
            flags=HelmFlags(create_namespace=True, wait=True, timeout=timedelta(minutes=10)),
        ),
    ),
    commands=(Command(name="get-namespace", cmd="kubectl get pods -n vllm-demo"),),
    steps=(Step(name="get-namespace", type=StepType.COMMAND), Step(name="vllm-app", type=StepType.HELM)),
    burst_duration=timedelta(minutes=10),
    service_account="vllm-sa",
)


def placement(name: str = "vllm-7f3a90c1", cluster: str = "worker-2", **fields: object) -> Placement:
    return replace(PLACEMENT, name=PlacementName(name), cluster=ClusterName(cluster), **fields)


def files(of: Placement, **payload: str) -> tuple[Placement, dict[str, bytes]]:
    """Return a placement with its digest and its files as the daemon writes them, by path on the branch."""
    contents = {f"{of.name}/manifests/{name}.yaml": text.encode() for name, text in payload.items()}
    of = replace(of, digest=digest(contents, of, SPEC))
    contents[f"{of.name}/placement.yaml"] = write_placement(of, SPEC, charts="engine")
    return of, {f"clusters/{of.cluster}/{path}": data for path, data in contents.items()}


def restraint(**fields: object) -> Restraint:
    kept = Restraint(
        kind=RestraintKind.HOLD,
        cluster=ClusterName("worker-2"),
        since=START,
        until=START + timedelta(hours=1),
        reason="vllm-7f3a90c1 was deleted by hand",
        placement=PlacementName("vllm-7f3a90c1"),
    )
    return replace(kept, **fields)


# Anything that can be a value of the model, however unlikely.

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
placement_names = names.filter(lambda name: name != "flux")
moments = st.datetimes(datetime(2000, 1, 1), datetime(2200, 12, 31)).map(  # noqa: DTZ001 -- hypothesis wants naive bounds
    lambda at: at.replace(microsecond=0, tzinfo=UTC)
)
durations = st.timedeltas(timedelta(microseconds=1), timedelta(days=3650))
quantities = st.integers(0, 10**30).map(Quantity) | st.integers(0, 10**6).map(lambda count: Quantity(count * ONE))
leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json = st.recursive(
    leaves | text, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=8
)
mappings = st.dictionaries(text, json, max_size=3)

requirements = st.lists(
    st.builds(Requirement, key=text, operator=text, values=st.lists(text, max_size=2).map(tuple)), max_size=2
).map(tuple)
options = st.builds(
    DeviceOption,
    device_class=text,
    selectors=st.lists(text, max_size=2).map(tuple),
    count=st.integers(1, 32),
    every=st.booleans(),
)
shapes = st.builds(
    ReplicaShape,
    requests=st.builds(Resources, amounts=st.dictionaries(text, quantities, max_size=3)),
    node_selector=st.dictionaries(text, text, max_size=2),
    node_terms=st.lists(st.builds(Requirements, labels=requirements, fields=requirements), max_size=2).map(tuple),
    devices=st.lists(
        st.builds(DeviceRequest, options=st.lists(options, min_size=1, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
    obstacle=text,
    tolerations=st.lists(st.builds(Toleration, key=text, operator=text, value=text, effect=text), max_size=2).map(
        tuple
    ),
    group_size=st.integers(1, 64),
)
placements = st.builds(
    Placement,
    name=placement_names.map(PlacementName),
    cluster=names.map(ClusterName),
    workload=st.builds(WorkloadId, names.map(WorkspaceName), names.map(TemplateName), request=st.just(False)),
    replicas=st.integers(0, 10**9 - 1),
    created_at=moments,
    changed_at=moments,
    expires_at=moments,
    engine=st.sampled_from(EngineName),
    policy=text,
    deletion_policy=st.sampled_from(DeletionPolicy),
    source_commit=st.from_regex(r"[0-9a-f]{40}", fullmatch=True).map(CommitId),
    namespace=text,
    target_namespace=text,
    shape=shapes,
    origin=st.sampled_from(Origin),
    subset=st.sampled_from(["", "h100", "a pool: 'of' ours"]),
    digest=text,
).map(lambda one: replace(one, workload=one.workload._replace(request=one.origin is Origin.REQUEST)))
flags = st.builds(
    HelmFlags,
    atomic=st.booleans(),
    cleanup_on_fail=st.booleans(),
    create_namespace=st.booleans(),
    skip_crds=st.booleans(),
    wait=st.booleans(),
    timeout=st.none() | durations,
)


charts_of_any_kind = st.builds(
    HelmConfig,
    name=text,
    chart=text,
    release_name=text,
    release_namespace=text,
    repo_name=text,
    repo_url=text,
    version=text,
    values=mappings,
    secret_ref=text,
    flags=flags,
)


@st.composite
def specs(draw: st.DrawFn) -> DeploySpec:
    charts = draw(st.lists(charts_of_any_kind, max_size=2))
    manifests = draw(st.lists(st.builds(ManifestResource, name=text, manifest=mappings), max_size=2))
    commands = draw(st.lists(st.builds(Command, name=text, cmd=text), max_size=2))
    steps = [
        *(Step(name=chart.name, type=StepType.HELM) for chart in charts),
        *(Step(name=item.name, type=StepType.MANIFEST) for item in manifests),
        *(Step(name=item.name, type=StepType.COMMAND) for item in commands),
    ]
    return DeploySpec(
        helm=tuple(charts),
        manifests=tuple(manifests),
        commands=tuple(commands),
        steps=tuple(draw(st.permutations(steps))),
        burst_duration=draw(st.none() | durations),
        deletion_policy=draw(st.sampled_from(DeletionPolicy)),
        service_account=draw(text),
    )


restraints = st.builds(
    Restraint,
    kind=st.sampled_from(RestraintKind),
    cluster=st.none() | names.map(ClusterName),
    since=moments,
    until=moments,
    reason=text,
    placement=placement_names.map(PlacementName),
    move=st.booleans(),
)
