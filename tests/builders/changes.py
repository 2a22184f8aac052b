"""One change of each kind, with the numbers of docs/reference/commits.md."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta

from reconciler.core.commits.messages import message
from reconciler.model.action import Action
from reconciler.model.approval import BurstProposal, ProposalEnd, ProposedPlacement
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import GpuAsk
from reconciler.model.ids import ClusterName, CommitId, PlacementName, TemplateName
from reconciler.model.ledger import Drift
from reconciler.model.manifest_source import MadeFrom
from reconciler.model.placement import RestraintKind
from reconciler.model.plan import Change, Choice, Reason, Refusal, Shortage
from reconciler.model.request import Asker, Ended, Provisioning, Request, RequestRecord
from reconciler.model.tree import Identity, LoggedCommit
from reconciler.model.units import ONE, Quantity, Resources
from tests.builders.placement_records import PLACEMENT, SOURCE, SPEC, START, VLLM, restraint

WORKER_1, WORKER_3 = ClusterName("worker-1"), ClusterName("worker-3")
OURS = Identity(name="Overspill", email="overspill@overspill.dev")
GPU = "nvidia.com/gpu"


def gpus(count: int) -> Resources:
    return Resources(amounts={GPU: Quantity(count * ONE)})


SHORTAGE = Shortage(
    primary=WORKER_1,
    replicas=3,
    waited=timedelta(seconds=45),
    requests=Resources(amounts={"cpu": Quantity(8 * ONE), GPU: ONE}),
    node_selector=(("nvidia.com/gpu.product", "H100"), ("zone", "a")),
)
CHOICE = Choice(cluster=PLACEMENT.cluster, rank=0, fits=4, free=gpus(6), price_per_gpu_hour=2.99)
REFUSED = (Refusal(cluster=WORKER_3, reason=Reason.LABELS, message="region eu-only", remedy="label it"),)

PLACE = Change(action=Action.PLACE, after=PLACEMENT, shortage=SHORTAGE, choice=CHOICE, refused=REFUSED)
IN_SUBSET = replace(
    PLACE,
    after=replace(PLACEMENT, subset="h100"),
    choice=replace(CHOICE, subset="h100", because="subset h100 then has 3 of at most 4"),
    refused=(),
)
GROWN = replace(PLACEMENT, replicas=5, changed_at=START + timedelta(minutes=2), digest="sha256-77aa")
RESIZE = Change(
    action=Action.RESIZE,
    before=PLACEMENT,
    after=GROWN,
    detail="2 more replicas missing on worker-1",
    shortage=replace(SHORTAGE, replicas=2, waited=timedelta(seconds=30)),
    choice=replace(CHOICE, fits=3, free=gpus(3)),
)
SHRINK = Change(
    action=Action.RESIZE,
    before=GROWN,
    after=PLACEMENT,
    why=EndReason.DEMAND_GONE,
    detail="no more than 3 of 5 replicas were needed in the last 5m",
)
OLD = MadeFrom(text="Deployment/serving/vllm@sha256-3f9a", digest="sha256-3f9a", images="vllm/vllm-openai:v0.10.1")
NEW = MadeFrom(text="Deployment/serving/vllm@sha256-b81c", digest="sha256-b81c", images="vllm/vllm-openai:v0.11.0")
UPDATE = Change(
    action=Action.RESIZE,
    before=replace(PLACEMENT, made_from=OLD),
    after=replace(PLACEMENT, made_from=NEW, changed_at=GROWN.changed_at, digest="sha256-5e20"),
    detail=f"its source runs {NEW.images} now, {OLD.images} before",
)
LONGER = replace(GROWN, expires_at=START + timedelta(minutes=40))
EXTEND = Change(action=Action.EXTEND, before=GROWN, after=LONGER, detail="asked for by ann")
MOVED = replace(
    LONGER,
    name=PlacementName("vllm-0b2e44d1"),
    cluster=WORKER_3,
    created_at=START + timedelta(minutes=9),
    digest="sha256-c4d5",
)
MOVE = Change(
    action=Action.MOVE,
    before=LONGER,
    after=MOVED,
    why=EndReason.POLICY,
    detail="worker-2 is draining",
    choice=Choice(cluster=WORKER_3, rank=1, fits=8, free=gpus(8), limit=8),
)
COOL_DOWN = restraint(
    kind=RestraintKind.COOL_DOWN,
    cluster=None,
    since=LONGER.expires_at,
    until=LONGER.expires_at + timedelta(minutes=5),
    reason="vllm-7f3a90c1 on worker-2 ended: expired",
)
REVERT = Change(
    action=Action.REVERT, before=LONGER, why=EndReason.EXPIRED, detail="its 40m are over", restraint=COOL_DOWN
)
HOLD = Change(action=Action.HOLD, workload=VLLM, before=GROWN, restraint=restraint())
RELEASE = Change(
    action=Action.RELEASE, workload=VLLM, restraints=(restraint(),), detail="nothing is missing on worker-1 any more"
)
RESTORE = Change(
    action=Action.RESTORE,
    drifted=Drift(placement=GROWN, removed=False, files={}),
    detail="its files were edited by hand",
)

ANN = Identity(name="Ann", email="ann@example.com")
RECEIVED = RequestRecord(
    request=Request(
        name=TemplateName("bookinfo"),
        workspace=VLLM.workspace,
        namespace="kubeslice-avesha",
        spec=replace(SPEC, burst_duration=timedelta(minutes=15)),
        clusters=(PLACEMENT.cluster,),
        ask=GpuAsk(gpus=2),
    ),
    asker=Asker.API,
    author="Ann",
    received_at=START,
    changed_at=START,
    source_commit=SOURCE,
)
BEGUN = replace(RECEIVED, began_at=START)
SHORT = replace(
    BEGUN, request=replace(BEGUN.request, spec=replace(BEGUN.request.spec, burst_duration=timedelta(minutes=5)))
)
ENDED = Ended(status=Provisioning.COMPLETED, at=START + timedelta(minutes=5), message="its 5m are over")
CLOSED = replace(SHORT, ended=ENDED)
RECEIVE = Change(action=Action.RECEIVE, record=RECEIVED, author=ANN)
AMEND = Change(
    action=Action.AMEND, record_before=BEGUN, record=SHORT, detail="Ann asked for it: burstDuration", author=ANN
)
CLOSE = Change(action=Action.CLOSE, record_before=SHORT, record=CLOSED)
FORGET = Change(action=Action.FORGET, record=CLOSED, detail="deleted by Ann", author=ANN)

PROPOSAL = BurstProposal(
    workload=VLLM,
    policy="gpu",
    proposed_at=START,
    until=START + timedelta(hours=1),
    reason="3 replicas missing on worker-1 for 45s: Insufficient nvidia.com/gpu",
    renewals="it is renewed while it is needed, 4h in all at most",
    placements=(
        ProposedPlacement(
            cluster=PLACEMENT.cluster, replicas=3, gpus=3, price_per_gpu_hour=2.99, duration=timedelta(minutes=10)
        ),
    ),
)
PROPOSE = Change(action=Action.PROPOSE, proposal=PROPOSAL)
APPROVE = Change(action=Action.APPROVE, proposal=PROPOSAL, detail="approved by Ann: the launch is worth it", author=ANN)
END_PROPOSAL = Change(
    action=Action.END_PROPOSAL,
    proposal=PROPOSAL,
    why=ProposalEnd.REFUSED,
    detail="refused by Ann: too dear this week",
    restraint=restraint(cluster=None, reason="refused by Ann"),
    author=ANN,
)

ALL: tuple[Change, ...] = (
    PLACE, RESIZE, EXTEND, MOVE, REVERT, HOLD, RELEASE, RESTORE, RECEIVE, AMEND, CLOSE, FORGET, PROPOSE, APPROVE,
    END_PROPOSAL,
)  # fmt: skip # a list of words, filled line by line


def logged(change: Change, minutes: int, history: tuple[LoggedCommit, ...] = ()) -> LoggedCommit:
    """Return a change's commit as git gives it back, so many minutes after the start, under a made-up id."""
    text = message(change, source=SOURCE, history=history)
    head, _, body = text.strip("\n").partition("\n")
    last = body.split("\n\n")[-1]
    return LoggedCommit(
        id=CommitId(hashlib.sha1(text.encode()).hexdigest()),
        at=START + timedelta(minutes=minutes),
        author=OURS,
        committer=OURS,
        subject=head,
        body=body.strip("\n"),
        trailers=dict(line.split(": ", 1) for line in last.split("\n")),
    )


HISTORY = (logged(EXTEND, 3), logged(RESIZE, 2), logged(PLACE, 1))
"""The commits of one placement, newest first."""
