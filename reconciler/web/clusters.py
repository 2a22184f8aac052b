"""*Clusters*: the GPUs of each cluster as cells, whose they are, its nodes, and how fresh the view of it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.explain.gpu_use import gpu_use, home_gpus
from reconciler.core.explain.inventory import Health, InventoryNode, inventory_nodes
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.status import cluster_status
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.policy import Availability, EngineName
from reconciler.text.gpu_cells import CELLS, GpuUse, draw_gpus
from reconciler.text.wording import describe_slices
from reconciler.web.paging import TablePage, page_of
from reconciler.web.viewer import Viewer

SIZE = 25
"""Clusters of a page."""
_WIDTH = 40
"""Cells of a line."""
_LINES = 4
_USES = {symbol: use for use, (symbol, _, _) in CELLS.items()}
_MOST_PLACEMENTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRun:
    """Neighbouring cells of one use."""

    use: GpuUse
    column: int
    line: int
    cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """The GPUs of one kind on one node."""

    name: str
    model: str
    gpus: int | None
    """None where the observation has no total."""
    free: int
    health: Health
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCard:
    """A cluster."""

    name: ClusterName
    engine: EngineName | None
    """None of a partition of Slurm."""
    availability: Availability
    reached_by: str
    observed_at: datetime | None
    """None for a cluster that was never seen."""
    age: timedelta | None
    reporting: bool
    message: str
    """Why it counts as unseen, or that it is a partition of Slurm; empty where it is seen."""
    uses: Mapping[GpuUse, int]
    runs: tuple[CellRun, ...]
    lines: int
    """Lines of cells."""
    gpus_per_cell: int
    home_of: tuple[WorkspaceName, ...]
    """The workspaces whose primary it is."""
    lends_to: tuple[WorkspaceName, ...]
    """The workspaces that may burst to it."""
    price: float | None
    """In dollars for a GPU and an hour; None where unknown."""
    nodes: tuple[NodeRow, ...]
    placements: tuple[Placement, ...]
    """Those that the viewer may see, as many as are shown."""
    more_placements: int

    @property
    def gpus(self) -> int:
        """All GPUs on nodes that take pods."""
        return sum(self.uses.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """The view."""

    at: datetime
    cards: TablePage[ClusterCard]
    find: str
    unseen: int
    """Clusters of all pages that count as unseen."""
    total: int
    """Clusters of all pages, without partitions of Slurm."""


def clusters_view(viewer: Viewer, *, number: int = 1, find: str = "") -> Clusters:
    """Make the view: a page of clusters whose name has `find` in it, unseen ones and those with placements first."""
    decision = viewer.snapshot.decision
    desired = decision.inputs.desired
    statuses = {name: cluster_status(decision, desired.clusters[name]) for name in viewer.clusters}
    lent = decision.inputs.ledger.placements.clusters()
    shown = sorted(
        (name for name in statuses if find in name),
        key=lambda name: (not statuses[name].message, name not in lent, name),
    )
    home = home_gpus(decision.inputs)
    return Clusters(
        at=decision.inputs.now,
        cards=page_of(shown, number, SIZE, lambda name: cluster_card(viewer, name, home.get(name, 0))),
        find=find,
        unseen=sum(bool(status.message) for status in statuses.values() if status.engine is not None),
        total=sum(status.engine is not None for status in statuses.values()),
    )


def cluster_card(viewer: Viewer, name: ClusterName, home: int) -> ClusterCard:
    """Make the card of one cluster; `home` are the GPUs of workloads whose primary it is."""
    decision = viewer.snapshot.decision
    inputs = decision.inputs
    cluster = inputs.desired.clusters[name]
    status = cluster_status(decision, cluster)
    nodes = tuple(inventory_nodes(inputs, (name,), BUGS.note))
    uses = gpu_use(inputs, name, home, nodes)
    drawing = draw_gpus([uses], width=_WIDTH, lines=_LINES)
    placements = [
        placement
        for placement in inputs.ledger.placements.on(name).placements
        if viewer.may_see(placement.workload.workspace)
    ]
    workspaces = [inputs.desired.workspaces[workspace] for workspace in viewer.workspaces]
    return ClusterCard(
        name=name,
        engine=status.engine,
        availability=cluster.availability,
        reached_by=status.connection,
        observed_at=status.observed_at,
        age=None if status.observed_at is None else inputs.now - status.observed_at,
        reporting=status.reporting,
        message=viewer.say(status.message),
        uses=uses,
        runs=_runs(drawing.lines),
        lines=len(drawing.lines),
        gpus_per_cell=drawing.gpus_per_cell,
        home_of=tuple(workspace.name for workspace in workspaces if workspace.primary == name),
        lends_to=tuple(
            workspace.name
            for workspace in workspaces
            if name in workspace.clusters and workspace.primary != name and cluster.slurm is None
        ),
        price=cluster.price_per_gpu_hour,
        nodes=tuple(map(_node_row, nodes)),
        placements=tuple(placements[:_MOST_PLACEMENTS]),
        more_placements=max(0, len(placements) - _MOST_PLACEMENTS),
    )


def _runs(lines: Sequence[Sequence[tuple[str, str]]]) -> tuple[CellRun, ...]:
    """Place runs of cells in a grid."""
    runs: list[CellRun] = []
    for number, line in enumerate(lines):
        column = 0
        for text, _ in line:
            if text.strip():
                runs.append(CellRun(use=_USES[text[0]], column=column, line=number, cells=len(text)))
            column += len(text)
    return tuple(runs)


def _slices(node: InventoryNode) -> str:
    return "" if node.slices is None else f" ({describe_slices(node.count or 0, node.slices, node.share)})"


def _node_row(node: InventoryNode) -> NodeRow:
    return NodeRow(
        name=node.node,
        model=(node.model or node.resource) + _slices(node),
        gpus=node.count,
        free=node.free,
        health=node.health,
        zone=node.zone or node.region,
    )
