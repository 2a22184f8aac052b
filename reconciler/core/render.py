"""From a plan to the commits that carry it out.

Two steps, because some engines want charts rendered in between, which takes a process: `specs` fills in the templates,
`commits` writes the files and messages. A change that cannot be written is left out and told as suppressed; it never
holds up another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.core import messages, record, restraints, templates, validate
from reconciler.core.engines import Deployment, anchor, engine, target_namespace
from reconciler.core.situation import Situation
from reconciler.core.wording import listed
from reconciler.errors import InvalidInput, Severity
from reconciler.model.ids import BlobId, ClusterName, WorkloadId
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import (
    Change,
    Extend,
    Hold,
    Move,
    Place,
    Plan,
    Reason,
    Release,
    Resize,
    Restore,
    Revert,
    Suppressed,
)
from reconciler.model.policy import Desired, EngineName
from reconciler.model.tree import Commit, Identity, LoggedCommit
from reconciler.model.workload import DeploySpec, Json

README = """\
# Placements

Overspill writes this branch; Argo CD, Flux or kubectl apply what lies under `clusters/`. Each commit says what was
decided and why. `git revert` one to undo it: Overspill respects that and holds the workload back on that cluster.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Specs:
    """The specs of all placements that a plan writes, by directory, and why the others have none."""

    ready: Mapping[str, DeploySpec]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What has to be fetched before commits can be written.

    `charts` are rendered objects by placement directory and helm config name; `failed` says why those of a directory
    could not be rendered. `blobs` are the files that a restore puts back, `records` the placement.yaml of placements
    that keep their spec, by directory. `history` is the commits of placements that end, by placement id, newest first.
    """

    charts: Mapping[str, Mapping[str, tuple[Json, ...]]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    blobs: Mapping[BlobId, bytes] = field(default_factory=dict)
    records: Mapping[str, bytes] = field(default_factory=dict)
    history: Mapping[str, tuple[LoggedCommit, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The commits of a plan in order, the changes as they were written, and those that could not be."""

    commits: tuple[Commit, ...]
    changes: tuple[Change, ...]
    suppressed: tuple[Suppressed, ...]


def written(change: Change) -> Placement | None:
    """Return the placement whose files a change writes anew from its template, if any."""
    match change:
        case Place(placement=placement) | Resize(after=placement) | Move(after=placement):
            return placement
        case _:
            return None


def specs(plan: Plan, desired: Desired) -> Specs:
    """Fill in the template of every placement that the plan writes, and check the result as strictly as a file."""
    ready: dict[str, DeploySpec] = {}
    failed: dict[str, str] = {}
    for change in plan.changes:
        placement = written(change)
        if placement is None:
            continue
        template = desired.templates[placement.workload]
        context = templates.Context(
            replicas=placement.replicas,
            cluster=desired.clusters[placement.cluster],
            placement=placement,
            workspace=desired.workspaces[placement.workload.workspace],
            template=template,
        )
        try:
            spec = templates.render(template.spec, context)
        except InvalidInput as error:
            failed[placement.path] = str(error)
            continue
        findings = [
            finding for finding in validate.findings(spec, context.workspace) if finding.severity is Severity.ERROR
        ]
        if findings:
            failed[placement.path] = "; ".join(
                f"{template.path}:{template.line}: {'.'.join(map(str, finding.loc))}: {finding.message}"
                for finding in findings
            )
        else:
            ready[placement.path] = spec
    return Specs(ready=ready, failed=failed)


def commits(plan: Plan, specs: Specs, material: Material, situation: Situation, author: Identity) -> Rendered:
    """Write the commits of a plan, one for each change, in its order."""
    writer = _Writer(specs, material, situation, author)
    if situation.ledger.commit is None:
        writer.start()
    writer.anchor(situation.ledger.anchored)
    for change in plan.changes:
        writer.write(change)
    return Rendered(
        commits=tuple(writer.commits), changes=tuple(writer.changes), suppressed=(*plan.suppressed, *writer.suppressed)
    )


class _Writer:
    """Writes commits one after the other, and knows what the ledger files hold after each."""

    def __init__(self, specs: Specs, material: Material, situation: Situation, author: Identity) -> None:
        self.commits: list[Commit] = []
        self.changes: list[Change] = []
        self.suppressed: list[Suppressed] = []
        self._specs = specs
        self._material = material
        self._desired = situation.desired
        self._now = situation.now
        self._kept = situation.ledger.restraints
        self._author = author
        self._restraints: dict[WorkloadId, tuple[Restraint, ...]] = {}

    def start(self) -> None:
        """Begin the branch with a page for people who land on it."""
        message = (
            f"start({self._desired.fleet.name}): the output branch\n\n"
            f"Overspill-Action: Start\nOverspill-Source: {self._desired.commit}\n"
        )
        self._commit(message, key="start", writes={"README.md": README.encode()})

    def anchor(self, there: Collection[ClusterName]) -> None:
        """Keep the directory of each cluster with Flux alive, in a commit of its own: no burst's end takes it away."""
        clusters = self._desired.clusters.values()
        wanted = sorted(one.name for one in clusters if one.engine is EngineName.FLUX and one.name not in there)
        if not wanted:
            return
        message = (
            f"start({self._desired.fleet.name}): what Flux follows in {listed(wanted, 1)}\n\n"
            f"Flux fails where this directory is not there, so it stays when the last placement goes.\n\n"
            f"Overspill-Action: Start\nOverspill-Source: {self._desired.commit}\n"
        )
        self._commit(message, key="start", writes=dict(map(anchor, wanted)))

    def write(self, change: Change) -> None:
        match change:
            case Place() | Resize() | Move():
                self._deploy(change)
            case Extend(before=before, after=after):
                spec = record.read_spec(self._material.records[before.path], f"{before.path}/placement.yaml")
                mode = engine(after.engine).charts_mode(spec)
                self._close(
                    change, writes={f"{after.path}/placement.yaml": record.write_placement(after, spec, charts=mode)}
                )
            case Revert(placement=placement, restraint=restraint):
                self._close(
                    change,
                    removes=placement.files,
                    ledger=(placement.workload, (restraint,), ()) if restraint else None,
                    history=self._material.history.get(placement.id, ()),
                )
            case Hold(workload=workload, placement=placement, restraint=restraint):
                self._close(change, removes=placement.files, ledger=(workload, (restraint,), ()))
            case Release(workload=workload, restraints=ended):
                self._close(change, ledger=(workload, (), ended))
            case Restore(tampered=tampered):
                files = {path: self._material.blobs[blob] for path, blob in tampered.files.items()}
                self._close(change, writes=files)

    def _deploy(self, change: Place | Resize | Move) -> None:
        """Write all files of a placement from its spec; the digest over them goes into the record and the marker."""
        placement = change.placement if isinstance(change, Place) else change.after
        problem = self._specs.failed.get(placement.path) or self._material.failed.get(placement.path)
        spec = self._specs.ready.get(placement.path)
        if problem or spec is None:
            self._refuse(placement, problem or "its template could not be filled in")
            return
        chosen = engine(placement.engine)
        workspace = self._desired.workspaces[placement.workload.workspace]
        placement = replace(
            placement, target_namespace=target_namespace(spec), deletion_policy=spec.deletion_policy, digest=""
        )
        deployment = Deployment(
            placement=placement,
            spec=spec,
            workspace=workspace,
            charts=self._material.charts.get(placement.path, {}),
            flux=self._desired.fleet.flux,
        )
        try:
            files = dict(chosen.files(deployment))
        except InvalidInput as error:
            self._refuse(placement, str(error))
            return
        placement = replace(placement, digest=record.digest(files, placement, spec))
        files[chosen.marker_path(placement)] = chosen.marker(replace(deployment, placement=placement))
        written = record.write_placement(placement, spec, charts=chosen.charts_mode(spec))
        files[f"{placement.name}/placement.yaml"] = written
        writes = {f"clusters/{placement.cluster}/{path}": data for path, data in sorted(files.items())}
        if isinstance(change, Place):
            self._close(replace(change, placement=placement), writes=writes)
        elif isinstance(change, Resize):
            self._close(replace(change, after=placement), removes=placement.files, writes=writes)
        else:
            history = self._material.history.get(change.before.id, ())
            self._close(replace(change, after=placement), removes=change.before.files, writes=writes, history=history)

    def _refuse(self, placement: Placement, problem: str) -> None:
        self.suppressed.append(
            Suppressed(
                workload=placement.workload,
                reason=Reason.NOT_RENDERED,
                message=f"{placement.cluster}: {problem}",
                replicas=placement.replicas,
            )
        )

    def _close(
        self,
        change: Change,
        *,
        removes: tuple[str, ...] = (),
        writes: Mapping[str, bytes] | None = None,
        ledger: tuple[WorkloadId, tuple[Restraint, ...], tuple[Restraint, ...]] | None = None,
        history: Sequence[LoggedCommit] = (),
    ) -> None:
        """Make the commit of one change; `ledger` names a workload and the restraints that begin and end with it."""
        files = dict(writes or {})
        if ledger is not None:
            workload, begun, ended = ledger
            path, left = restraints.ledger_path(workload), self._restrained(workload, begun, ended)
            if left:
                files[path] = restraints.write_restraints(workload, left)
            else:
                removes = (*removes, path)
        message = messages.message(change, source=self._desired.commit, history=history)
        self.changes.append(change)
        self._commit(message, key=messages.subject(change), removes=removes, writes=files)

    def _restrained(
        self, workload: WorkloadId, begun: tuple[Restraint, ...], ended: tuple[Restraint, ...]
    ) -> tuple[Restraint, ...]:
        """Work out what a workload's ledger file holds from here on; what has lapsed is swept out on the way."""
        before = self._restraints.get(workload, self._kept.get(workload, ()))
        left = tuple(restraint for restraint in before if restraint not in ended and self._now < restraint.until)
        self._restraints[workload] = (*left, *begun)
        return self._restraints[workload]

    def _commit(
        self, message: str, *, key: str, removes: tuple[str, ...] = (), writes: Mapping[str, bytes] | None = None
    ) -> None:
        self.commits.append(
            Commit(message=message, author=self._author, at=self._now, removes=removes, writes=writes or {}, key=key)
        )
