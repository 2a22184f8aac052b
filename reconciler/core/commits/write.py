"""The commits that carry a plan out, with the files of each placement.

A change that cannot be written is left out and suppressed with the reason; it never holds up another. The cluster that
it was for is returned too, so that the pass can be decided anew without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.commits import messages
from reconciler.core.commits.templates import RenderedTemplate, RenderedTemplates
from reconciler.core.commits.trailers import Trailer, write_trailers
from reconciler.core.decide.candidates.own_objects import OwnObjects
from reconciler.core.decide.state.pass_input import PassInput, Unwritable
from reconciler.core.engines import (
    DIRECTORIES,
    ENGINES,
    Deployment,
    Engine,
    anchor_path,
    engine,
    placement_files,
    target_namespace,
)
from reconciler.core.engines.deployment import chart_steps
from reconciler.core.engines.made_objects import new_objects, shared_object
from reconciler.core.engines.standing_objects import ObjectKey, hold_immutable, refuse_renamed_releases
from reconciler.core.fleet.object_owners import RELEASE, describe_object
from reconciler.core.ledger import placement_record, proposal_record, request_record, restraints
from reconciler.core.signals.past_demand import write_levels
from reconciler.core.spread.inject import placement_injection
from reconciler.errors import Bug, InvalidInput, Problem
from reconciler.model.action import Action
from reconciler.model.approval import ProposalEnd
from reconciler.model.demand import Demand
from reconciler.model.ids import BlobId, ClusterName, WorkloadId
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import (
    BELONGS,
    CHARTS_PENDING,
    Change,
    Plan,
    Reason,
    Suppressed,
    unwritten_reason,
)
from reconciler.model.policy import Desired
from reconciler.model.request import Asker, RequestRecord
from reconciler.model.tree import ROOT, Commit, Identity, LoggedCommit, checked_path, describe_standing
from reconciler.model.workload import DeploySpec, Json
from reconciler.text.wording import join_names


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPlacement:
    """A decided placement with its files. Its record, its commit and its events are written from it."""

    decided: Placement
    """The placement as the plan has it."""
    record: Placement
    """The placement as ``placement.yaml`` records it: as decided, with the target namespace and the digest."""
    files: Mapping[str, bytes]
    """Contents by path on the output branch, the record and the marker among them."""


def render_placement(
    desired: Desired,
    decided: Placement,
    spec: DeploySpec,
    charts: Mapping[str, tuple[Json, ...]],
    standing: Mapping[str, bytes],
) -> RenderedPlacement:
    """Write the files of a decided placement; the digest over them goes into its record and its marker.

    `standing` are the files of the version that it replaces, by path on the output branch; empty for a new placement.
    Raises InvalidInput for files that cannot be written, and for a record that could not be read again: a placement
    without one would never end.
    """
    chosen = engine(decided.engine)
    workspace = desired.workspaces[decided.workload.workspace]
    namespace = target_namespace(spec, workspace)
    # 1. The files of the engine do not hold the digest.
    deployment = Deployment(
        placement=decided.rendered(target_namespace=namespace, digest=""),
        spec=spec,
        workspace=workspace,
        charts=charts,
        fleet=desired.fleet,
        kinds=desired.kinds,
        schemas=desired.schemas,
        injection=placement_injection(desired, decided),
    )
    cluster = f"clusters/{decided.cluster}/"
    marker_path, record_path = chosen.marker_path(decided), f"{decided.name}/placement.yaml"
    before = {path.removeprefix(cluster): data for path, data in standing.items()}
    marker, replaced = before.pop(marker_path, b""), before.pop(record_path, b"")
    if marker and replaced and chosen.charts_mode(spec) == "engine":
        refuse_renamed_releases(placement_record.read_spec(replaced, f"{cluster}{record_path}"), spec)
    held = hold_immutable(
        before if marker else {},
        chosen.files(deployment),
        desired.kinds,
        desired.schemas,
        charts=bool(chart_steps(spec)),
    )
    files = dict(held.files)
    # 2. The marker and the record hold it.
    old = placement_record.read_placement(replaced, f"{cluster}{record_path}") if held.whole else None
    namespace = namespace if old is None else old.target_namespace
    placement = decided.rendered(target_namespace=namespace, digest="", kept=held.kept)
    digest = placement_record.digest(files, placement, spec)
    record = decided.rendered(target_namespace=namespace, digest=digest, kept=held.kept)
    if old is not None:
        files[marker_path] = marker.replace(old.digest.encode(), digest.encode())
    else:
        files[marker_path] = chosen.marker(replace(deployment, placement=record))
    files[record_path] = placement_record.write_placement(
        record, spec, charts=chosen.charts_mode(spec), kinds=desired.kinds, schemas=desired.schemas
    )
    written = {checked_path(f"{cluster}{name}"): data for name, data in sorted(files.items())}
    return RenderedPlacement(decided=decided, record=record, files=written)


RECORD_ENDING = "/placement.yaml"
"""How the paths of records of placements end."""
README = """\
# Placements

Overspill writes this branch, and an engine applies what lies under `clusters/`. Each commit says what was decided and
why. To end a burst, `git revert` the commit that began it, or delete its directory once other commits have followed:
Overspill respects that, and holds the workload back on that cluster.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInputs:
    """The contents that have to be fetched before commits can be written."""

    charts: Mapping[int, Mapping[str, tuple[Json, ...]]] = field(default_factory=dict)
    """Rendered objects, by position of the change and name of the Helm config."""
    failed: Mapping[int, str] = field(default_factory=dict)
    """Why the charts of a change cannot be rendered, by its position."""
    bugs: tuple[Bug, ...] = ()
    """Exceptions that nothing foresaw, each in rendering the charts of one change."""
    blobs: Mapping[BlobId, bytes] = field(default_factory=dict)
    """Files that a Restore puts back."""
    records: Mapping[str, bytes] = field(default_factory=dict)
    """placement.yaml of placements that keep their spec, by directory."""
    standing: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Files of placements that are written again, by directory and path."""
    beside: Mapping[ClusterName, Mapping[str, bytes]] = field(default_factory=dict)
    """Files of placements that may make the same objects as what is placed, where only rendering tells of either."""
    history: Mapping[str, tuple[LoggedCommit, ...]] = field(default_factory=dict)
    """Commits of placements that end, by placement id, newest first."""
    obstacles: Mapping[str, str] = field(default_factory=dict)
    """Files, links and submodules of people where directories of ours belong: the kind of each, by path."""

    def in_the_way(self, paths: Iterable[str]) -> str:
        """Say what of people's stands where files are to be written; empty for nothing."""
        if not self.obstacles:
            return ""
        written = set(paths)
        parents = {parent for path in written for parent in (path, *_parents(path))}
        # A file where a file is to be written is replaced: it is ours.
        stands = sorted(
            path for path in parents & self.obstacles.keys() if path not in written or self.obstacles[path] != "file"
        )
        if not stands:
            return ""
        path = stands[0]
        message, remedy = describe_standing(self.obstacles[path], path)
        return f"{message} (try: {remedy})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPlan:
    """The commits of a plan, and the changes that could not be written."""

    commits: tuple[Commit, ...]
    """A commit for each change, in the order of the plan."""
    changes: tuple[Change, ...]
    """The changes as their records have them."""
    suppressed: tuple[Suppressed, ...]
    unwritable: Unwritable = field(default_factory=dict)
    """Why a workload cannot be written for a cluster."""
    pending: frozenset[tuple[WorkloadId, str]] = frozenset()
    """Workloads and places whose charts are being rendered, moves among them."""
    bugs: tuple[Bug, ...] = ()
    """Exceptions that nothing foresaw, each in rendering or writing one change."""
    records: Mapping[tuple[str, bytes], Placement | RequestRecord] = field(default_factory=dict)
    """The values of written records, by path and content, so that no file is read back."""

    @property
    def titles(self) -> tuple[str, ...]:
        """The subjects of the commits of the changes."""
        of_changes = self.commits[len(self.commits) - len(self.changes) :]
        return tuple(commit.message.partition("\n")[0] for commit in of_changes)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every bug that was met in rendering or writing."""
        return tuple(bug.problem(bug.item) for bug in dict.fromkeys(self.bugs))


def _parents(path: str) -> Iterator[str]:
    """Yield the directories above a path, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def directories_of(change: Change) -> Iterator[str]:
    """Yield the directories of the output branch that the files of a change are written below."""
    workload = change.workload
    ledger = f"ledger/{workload.workspace}"
    yield from ("ledger", ledger, f"{ledger}/requests", f"{ledger}/proposals", f"{ledger}/approvals")
    yield restraints.ledger_path(workload)
    if change.after is not None:
        yield change.after.path
        yield from directories_of_cluster(change.after.cluster)


def directories_of_cluster(cluster: ClusterName) -> Iterator[str]:
    """Yield the directories of the output branch that all placements of a cluster share."""
    yield from (ROOT, f"{ROOT}/{cluster}", *(f"{ROOT}/{cluster}/{directory}" for directory in DIRECTORIES))


def unanchored_clusters(inputs: PassInput) -> Iterator[ClusterName]:
    """Yield the clusters whose engine's directory is not kept alive yet, and has to be."""
    for cluster in inputs.desired.clusters.values():
        chosen = engine(cluster.engine)
        path = anchor_path(cluster.name, chosen.directory)
        if path not in inputs.ledger.anchored and chosen.anchor(cluster.name) is not None:
            yield cluster.name


def open_clusters(inputs: PassInput, plan: Plan) -> frozenset[ClusterName]:
    """Return the clusters with placements whose objects only rendering tells.

    These are the standing ones of charts that Overspill has rendered, and those of templates with names from
    expressions, be they new.
    """
    makers, found = inputs.reach.makers, set[ClusterName]()
    for workload, template in inputs.desired.templates.items():
        standing = inputs.ledger.placements.of(workload).placements
        if standing and makers.has_open_objects(workload):
            found.update(placement.cluster for placement in standing)
        elif template.spec.helm:
            found.update(each.cluster for each in standing if engine(each.engine).to_render(template.spec))
    new = (change.after for change in plan.changes if change.after is not None)
    found.update(
        after.cluster
        for after in new
        if after.workload in inputs.desired.templates and makers.has_open_objects(after.workload)
    )
    return frozenset(found)


def write_commits(
    plan: Plan, templates: RenderedTemplates, material: CommitInputs, inputs: PassInput, author: Identity
) -> RenderedPlan:
    """Write the commits of a plan, one for each change, in its order."""
    writer = _Writer(material, inputs, author)
    if inputs.ledger.commit is None and (plan.changes or not inputs.desired.is_empty):
        writer.start()
    for entry in ENGINES.values():
        writer.anchor(entry, inputs.ledger.anchored)
    calls = _request_ids(plan, inputs)
    for position, change in enumerate(plan.changes):
        writer.attempt(position, change, templates.get(position), calls.get(position, ""))
    return RenderedPlan(
        commits=tuple(writer.commits),
        changes=tuple(writer.changes),
        suppressed=(*plan.suppressed, *writer.suppressed),
        unwritable=writer.unwritable,
        pending=frozenset(writer.pending),
        bugs=(*material.bugs, *writer.bugs),
        records=writer.records,
    )


def _request_ids(plan: Plan, inputs: PassInput) -> Mapping[int, str]:
    """Return the id of the call that asked for each change, by the position of the change in the plan.

    The placements of a request come and go by the call that made or ended it.
    """
    ids: dict[int, str] = {}
    requests: dict[WorkloadId, str] = {}
    for order in inputs.orders:
        answer = plan.answers.get(order.number)
        if order.request_id and answer is not None and answer.change is not None:
            first = answer.change if answer.first is None else answer.first
            ids |= dict.fromkeys(range(first, answer.change + 1), order.request_id)
            requests[plan.changes[answer.change].workload] = order.request_id
    if requests:
        workloads = (change.workload for change in plan.changes)
        ids = {place: requests[each] for place, each in enumerate(workloads) if each.request and each in requests} | ids
    return ids


class _Writer:
    """Writes commits one after the other, with the contents of the ledger files after each."""

    def __init__(self, material: CommitInputs, inputs: PassInput, author: Identity) -> None:
        self.commits: list[Commit] = []
        self.changes: list[Change] = []
        self.suppressed: list[Suppressed] = []
        self.unwritable: dict[tuple[WorkloadId, str], str] = {}
        self.pending: set[tuple[WorkloadId, str]] = set()
        self.bugs: list[Bug] = []
        self.records: dict[tuple[str, bytes], Placement | RequestRecord] = {}
        self._material = material
        self._desired = inputs.desired
        self._demands = inputs.demands
        self._now = inputs.now
        self._kept = inputs.ledger.restraints
        self._broken = {problem.path for problem in inputs.ledger.problems}
        self._author = author
        self._request_id = ""
        self._written: dict[str, Mapping[str, bytes]] = {}
        self._open: set[str] = set()
        self._makers = inputs.reach.makers
        self._own = OwnObjects(inputs)
        self._placements = inputs.ledger.placements
        self._begun: dict[str, Placement] = {}
        self._ended: set[str] = set()
        self._restraints: dict[WorkloadId, tuple[Restraint, ...]] = {}

    def start(self) -> None:
        """Begin the branch with a page for people who land on it."""
        message = f"start({self._desired.fleet.name}): the output branch\n\n{self._start_trailers()}\n"
        self._commit(message, key="start", writes={"README.md": README.encode()})

    def anchor(self, chosen: Engine, anchored: Collection[str]) -> None:
        """Keep an engine's directory of each cluster alive, in a commit of its own: the end of a burst leaves it."""
        missing: list[ClusterName] = []
        writes: dict[str, bytes] = {}
        reason = ""
        for cluster in sorted(self._desired.clusters.values(), key=lambda cluster: cluster.name):
            path = anchor_path(cluster.name, chosen.directory)
            if cluster.engine is chosen.name and path not in anchored:
                anchor = chosen.anchor(cluster.name)
                if anchor is not None and not self._material.in_the_way([path]):
                    missing.append(cluster.name)
                    writes[path], reason = anchor.content, anchor.reason
        if not writes:
            return
        message = (
            f"start({self._desired.fleet.name}): what {chosen.title} follows in {join_names(missing, 1)}\n\n"
            f"{reason}\n\n{self._start_trailers()}\n"
        )
        self._commit(message, key="start", writes=writes)

    def _start_trailers(self) -> str:
        return write_trailers([(Trailer.ACTION, Action.START), (Trailer.SOURCE, self._desired.commit)])

    def attempt(self, position: int, change: Change, template: RenderedTemplate | None, request_id: str = "") -> None:
        """Write one change behind the bulkhead; one that cannot be written is left out, and costs no other.

        `request_id` is the id of the call that asked for it.
        A placement that ends does so all the same, without the words for it.
        """
        self._request_id = request_id
        if template is not None and template.bug is not None:
            self.bugs.append(template.bug)
        bug = attempt(Seam.CHANGE, change.workload, partial(self._write, position, change, template))
        if bug is None:
            return
        self.bugs.append(bug)
        if change.deploys:
            self._refuse(change.placement, bug.summary)
            return
        if change.action is Action.REVERT:
            plain = replace(change, detail="", restraint=None)
            removes = placement_files(change.placement)
            bug = attempt(Seam.END, change.workload, partial(self._close, plain, removes=removes))
        if bug is not None:
            self._suppress(change, bug.summary)

    def _write(self, position: int, change: Change, template: RenderedTemplate | None) -> None:
        match change.action:
            case Action.PLACE | Action.RESIZE | Action.MOVE:
                self._deploy(change, position, template)
            case Action.EXTEND if template is not None:
                self._deploy(change, position, template)
            case Action.EXTEND:
                after = change.placement
                path = f"{after.path}/placement.yaml"
                spec = placement_record.read_spec(self._material.records[after.path], path)
                mode = engine(after.engine).charts_mode(spec)
                desired = self._desired
                record = placement_record.write_placement(
                    after, spec, charts=mode, kinds=desired.kinds, schemas=desired.schemas
                )
                self._close(change, writes={path: record})
            case Action.REVERT:
                self._ended.add(change.placement.path)
                history = self._material.history.get(change.placement.id, ())
                self._close(change, removes=placement_files(change.placement), history=history)
            case Action.HOLD:
                self._close(change, removes=placement_files(change.placement))
            case Action.RESTORE if change.drifted is not None:
                files = {path: self._material.blobs[blob] for path, blob in change.drifted.files.items()}
                self._close(change, writes=files)
            case _:
                self._write_record(change)

    def _write_record(self, change: Change) -> None:
        """Write or remove the file of a request, a proposal or an approval; a Release has none."""
        record, proposal = change.record, change.proposal
        removes, writes = change.approvals, dict[str, bytes]()
        if record is not None and change.action is Action.FORGET:
            removes = (request_record.request_path(record.workload),)
        elif record is not None:
            try:
                writes = self._request_files(record, change.written)
            except (InvalidInput, UnicodeError) as error:
                self._suppress(change, str(error))
                return
        elif proposal is not None:
            path = proposal_record.proposal_path(proposal.workload)
            if change.action is Action.PROPOSE:
                writes = {checked_path(path): proposal_record.write_proposal(proposal)}
            elif change.action is Action.APPROVE:
                path = checked_path(proposal_record.approval_path(proposal))
                writes = {path: proposal_record.write_approval(proposal)}
            elif change.why is not ProposalEnd.TOO_LATE:
                removes = (path, *removes)
        self._close(change, removes=removes, writes=writes)

    def _deploy(self, change: Change, position: int, template: RenderedTemplate | None) -> None:
        """Write all files of a placement from its spec, or note why it cannot be written."""
        placement = change.placement
        problem = (template.problem if template else "") or self._material.failed.get(position, "")
        spec = template.spec if template else None
        if problem or spec is None:
            if problem == CHARTS_PENDING:
                self._await_charts(change, placement)
            else:
                self._refuse(placement, problem or "its template could not be filled in")
            return
        try:
            charts = self._material.charts.get(position, {})
            standing = self._written.get(placement.path) or self._material.standing.get(placement.path, {})
            rendered = render_placement(self._desired, placement, spec, charts, standing)
            path, writes = f"{placement.path}/placement.yaml", dict(rendered.files)
            record = self.records[path, writes[path]] = rendered.record
            if change.record is not None:
                writes |= self._request_files(change.record)
        except (InvalidInput, UnicodeError) as error:
            self._refuse(placement, str(error))
            return
        is_open = bool(charts) or self._makers.has_open_objects(placement.workload)
        if taken := self._taken_object(placement, rendered, standing, is_open=is_open):
            self._refuse(placement, taken)
            return
        self._written[placement.path], self._begun[placement.path] = rendered.files, rendered.record
        if is_open:
            self._open.add(placement.path)
        history: tuple[LoggedCommit, ...] = ()
        removes = () if change.action is Action.PLACE else placement_files(record)
        if change.ended is not None:
            self._ended.add(change.ended.path)
            history = self._material.history.get(change.ended.id, ())
            removes = (*placement_files(change.ended), *removes)
        self._close(replace(change, after=record), removes=removes, writes=writes, history=history)

    def _taken_object(
        self, placement: Placement, rendered: RenderedPlacement, standing: Mapping[str, bytes], *, is_open: bool
    ) -> str:
        """Say that an object stands on the cluster, where only rendering tells of it or of this placement's objects.

        What is known before has been compared before the placements were decided. Empty where none stands.
        """
        cluster, directory = placement.cluster, f"{ROOT}/{placement.cluster}/"
        again = {placement.path, *self._written, *self._ended}
        stands = self._material.beside.get(cluster, {})
        others = {path: data for path, data in stands.items() if _directory(path) not in again}
        for path in self._written if is_open else self._open:
            if path != placement.path and path not in self._ended and path.startswith(directory):
                others.update(self._written[path])
        if not (is_open or others):
            return ""
        new = new_objects(rendered.files, standing)
        shared = shared_object(new, others) or _shared_release(rendered.files, standing, others)
        if shared is not None:
            (kind, name), path = shared
            owner = self._begun.get(_directory(path)) or self._placements.get(_directory(path))
            known = owner is not None and owner.workload.workspace == placement.workload.workspace
            whose = str(owner.workload) if owner is not None and known else "another workspace"
            return f"{kind.rpartition('/')[2]} {name} {BELONGS} {whose}"
        for kind, name in new if is_open else ():
            namespace, _, plain = name.rpartition("/")
            object_id = kind, namespace, plain
            whose = self._own.of_template(placement.workload, cluster, object_id) or self._own.seen(cluster, object_id)
            if whose:
                return f"{describe_object(object_id)} {BELONGS} {whose}"
        return ""

    def _request_files(self, kept: RequestRecord, written: bytes | None = None) -> dict[str, bytes]:
        """Write a request's record where it is not `written`. Raises InvalidInput for one that could not be read again.

        Of one that the API was asked for, that was made sure of before its caller got an answer.
        """
        data = written or request_record.write_request(kept, sure=kept.asker is Asker.API)
        path = checked_path(request_record.request_path(kept.workload))
        self.records[path, data] = replace(kept, request=kept.request.settled)
        return {path: data}

    def _await_charts(self, change: Change, placement: Placement) -> None:
        """Leave a change to a later pass. A placement that is to move stays where it is, whatever else is decided."""
        self.pending.add((placement.workload, placement.where))
        self._refuse(placement, CHARTS_PENDING)
        if change.action is Action.MOVE:
            del self.unwritable[placement.workload, placement.where]

    def _refuse(self, placement: Placement, problem: str) -> None:
        self.unwritable[placement.workload, placement.where] = problem
        self.suppressed.append(
            Suppressed(
                workload=placement.workload,
                reason=unwritten_reason(problem),
                message=f"{placement.where}: {problem}",
                replicas=placement.replicas,
            )
        )

    def _close(
        self,
        change: Change,
        *,
        removes: tuple[str, ...] = (),
        writes: Mapping[str, bytes] | None = None,
        history: Sequence[LoggedCommit] = (),
    ) -> None:
        """Make the commit of one change, with the restraints that begin and end with it."""
        files, workload = dict(writes or {}), change.workload
        demand = self._demands.get(workload)
        past = write_levels(demand.past, self._now) if isinstance(demand, Demand) and demand.past else ""
        message = messages.message(
            change, source=self._desired.commit, history=history, demand=past, request_id=self._request_id
        )
        if change.restraint is not None or change.restraints:
            path, left = restraints.ledger_path(workload), self._restraints_after(change)
            if path in self._broken or self._material.in_the_way([path]):
                pass  # something of a person's is there; a broken record holds the workload back until it is mended
            elif left:
                files[path] = restraints.write_restraints(workload, left)
            else:
                removes = (*removes, path)
        if problem := self._material.in_the_way(files):
            self._hold_up(change, problem)
            return
        self.changes.append(change)
        self._commit(message, key=messages.subject(change), removes=removes, writes=files, author=change.author)

    def _hold_up(self, change: Change, problem: str) -> None:
        """Leave a change out whose files would replace something of a person's."""
        if change.deploys:
            self._refuse(change.placement, problem)
        else:
            self._suppress(change, problem)

    def _suppress(self, change: Change, problem: str) -> None:
        """Leave a change out that cannot be written."""
        suppressed = Suppressed(workload=change.workload, reason=Reason.NOT_RENDERED, message=problem)
        self.suppressed.append(suppressed)

    def _restraints_after(self, change: Change) -> tuple[Restraint, ...]:
        """Return the restraints of a workload from this commit on, without those that have lapsed."""
        workload = change.workload
        before = self._restraints.get(workload, self._kept.get(workload, ()))
        standing = (restraint for restraint in before if restraint not in change.restraints)
        left = tuple(restraint for restraint in standing if restraints.is_kept(restraint, self._now))
        begun = () if change.restraint is None else (change.restraint,)
        self._restraints[workload] = (*left, *begun)
        return self._restraints[workload]

    def _commit(
        self,
        message: str,
        *,
        key: str,
        removes: tuple[str, ...] = (),
        writes: Mapping[str, bytes] | None = None,
        author: Identity | None = None,
    ) -> None:
        author = author or self._author
        self.commits.append(
            Commit(message=message, author=author, at=self._now, removes=removes, writes=writes or {}, key=key)
        )


def _shared_release(
    files: Mapping[str, bytes], standing: Mapping[str, bytes], others: Mapping[str, bytes]
) -> tuple[ObjectKey, str] | None:
    """Return the first release of a placement that another record has, with the path of that; see `shared_object`."""
    new = _releases(files).keys() - _releases(standing).keys()
    return min(((key, path) for key, path in _releases(others).items() if key in new), default=None) if new else None


def _releases(files: Mapping[str, bytes]) -> dict[ObjectKey, str]:
    """Return the releases of the records among files of placements, each with the path of its record.

    A person may have put anything into a record on the branch: what cannot be read is not compared.
    """
    return {
        (RELEASE, name): path
        for path, data in files.items()
        if path.endswith(RECORD_ENDING) and b"helmConfig:" in data
        for name in _release_names(data, path)
    }


@lru_cache(maxsize=4096)
def _release_names(data: bytes, path: str) -> tuple[str, ...]:
    """Read the releases of a record, as ``namespace/name``. Kept: each new release is compared with all others."""
    with suppress(InvalidInput):
        around = placement_record.read_placement(data, path).target_namespace
        charts = chart_steps(placement_record.read_spec(data, path))
        return tuple(f"{chart.release_namespace or around}/{chart.release_name}" for chart in charts)
    return ()


def _directory(path: str) -> str:
    """Return the directory of the placement that a file is of: ``clusters/worker-2/vllm-7f3a90c1``."""
    return "/".join(path.split("/", 3)[:3])
