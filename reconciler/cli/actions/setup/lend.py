"""`lend`: a live workload becomes files of the fleet repository."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from reconciler.adapters.git import checkout
from reconciler.app.commands import live_workload, trying
from reconciler.app.world import checked_kubeconfig
from reconciler.cli import package_files, printing
from reconciler.cli.actions.files import FleetDirectory, read_directory
from reconciler.cli.actions.plans.plan import print_plan, supposed_world
from reconciler.cli.actions.setup.release_chart import ChartAnswers, live_chart, refuse_answers
from reconciler.core.fleet.objects import first_names
from reconciler.core.fleet.read_file import parse_file
from reconciler.core.observe.supposition import parse_supposition
from reconciler.core.onboarding.helm_release import is_release
from reconciler.core.onboarding.lend import (
    LentFiles,
    LiveWorkload,
    choose_primary,
    choose_workspace,
    kind_and_name,
    lent_files,
    mention_once,
    template_of,
)
from reconciler.core.schema import yaml
from reconciler.core.validation.objects import check_types
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.daemon.reconcile import draft
from reconciler.environment import PREFIX
from reconciler.errors import InvalidInput, Problem, Severity, Transient
from reconciler.lab.memory_repository import MemoryRepository
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.policy import Desired
from reconciler.model.workload import Json, WorkloadRef
from reconciler.preview import decision_at
from reconciler.settings import Settings
from reconciler.text.findings import dotted, shortened
from reconciler.text.wording import count

_USUAL_NAMESPACE = "default"
_USUAL_POLICY = Path("policies", "serving.yaml")
_OF_THE_LAYOUT = ("templates", "clusters", "tolerations", "maxReplicas")
"""Fields of the layout's policy that hold for the clusters and templates of the layout alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The workload that a person names, and where it belongs."""

    workload: str | None
    """As kubectl takes it, ``deployment/vllm``; None for the only one of a file."""
    namespace: str | None = None
    """None for that of the object in a file, and for the usual one on a cluster."""
    primary: str | None = None
    workspace: str | None = None
    name: str | None = None
    """Of the template."""
    missing: int = 3
    """Replicas whose burst is shown."""
    reference: bool = False
    """Whether the template refers to the live object in place of a copy."""
    companions: bool = False
    """Whether it refers to the ConfigMaps and Services of that object as well."""
    chart: ChartAnswers = field(default_factory=ChartAnswers)
    """Of a Helm release."""


def lend(settings: Settings, fleet: Path, wanted: Wanted, manifests: Path | None, *, dry_run: bool) -> None:
    """Write the files with which a workload may burst, and show the burst of some missing replicas."""
    if wanted.companions and not wanted.reference:
        raise click.UsageError("--companions goes with --reference")
    checked_kubeconfig(settings)  # before a file is written
    directory = read_directory(fleet)
    desired = directory.desired()
    printing.problems(directory.unreadable)
    live = _live(settings, desired, wanted, manifests, fleet)
    lent = _lent(live, desired, directory, wanted)
    texts = {path: text.encode() for path, text in lent.files.items()}
    _refuse_what_is_there(fleet, texts)
    _refuse_lent(live, desired)
    if dry_run:
        for path, text in lent.files.items():
            printing.say(f"--- {fleet / path}\n{text}")
    after = directory.desired({path: parse_file(text) for path, text in texts.items()})
    problems, notes = mention_once(lent, after)
    _refuse_errors(problems, fleet)
    if not dry_run:
        _write(fleet, texts)
    for note in notes:
        printing.sentence(f"Note: {note}.")
    source = {**{path: (fleet / path).read_bytes() for path in directory.files}, **texts}
    if manifests is not None and (wanted.reference or (live.chart is not None and settings.kubeconfig is None)):
        # No cluster that is seen needs to have the object of the file, whose pods nobody but the file tells then.
        plain = replace(wanted, reference=False, companions=False, name=str(lent.workload.name))
        copy = _lent(replace(live, chart=None), desired, directory, plain)
        source[lent.template] = copy.files[copy.template].encode()
    try:
        _show_burst(settings, source, lent, wanted.missing)
    except (InvalidInput, Transient) as error:
        printing.warn(f"what would happen cannot be said: {error}")
    printing.sentence(
        "Nothing was written; leave out `--dry-run` to write the files."
        if dry_run
        else _next_steps(settings, fleet, f"{lent.workload}+{wanted.missing}")
    )


def _live(settings: Settings, desired: Desired, wanted: Wanted, manifests: Path | None, fleet: Path) -> LiveWorkload:
    """Read the workload from a file, or from its cluster."""
    primary = choose_primary(desired, wanted.primary, str(fleet.resolve()))
    word, _, release = (wanted.workload or "").partition("/")
    if is_release(word) and release:
        if wanted.reference:
            raise click.UsageError("--reference goes with an object: a chart is what its version is")
        place = wanted.namespace or _USUAL_NAMESPACE, release
        return live_chart(settings, desired, (primary, *place), wanted.chart, manifests)
    refuse_answers(wanted.chart)
    named = None if wanted.workload is None else kind_and_name(wanted.workload, desired.kinds)
    if manifests is not None:
        return _from_manifests(manifests, named, wanted.namespace, primary, desired.kinds)
    if named is None:
        raise click.UsageError("name the workload as KIND/NAME, or pass --filename with a file that holds one")
    return live_workload(settings, desired, primary, (named[0], wanted.namespace or _USUAL_NAMESPACE, named[1]))


def _from_manifests(
    path: Path, named: tuple[WorkloadKind, str] | None, namespace: str | None, primary: ClusterName, kinds: Kinds
) -> LiveWorkload:
    """Find the workload in a file: by its name, else the only one; without a namespace the only one of that name."""
    objects = _objects(path)
    workloads = [
        each for each in objects if (_bursts(each, kinds) if named is None else group_kind(each) == named[0].name)
    ]
    meant = [
        each
        for each in workloads
        if (named is None or _name(each) == named[1])
        and namespace in (None, _namespace(each, namespace or _USUAL_NAMESPACE))
    ]
    if len(meant) == 1:
        place = _namespace(meant[0], namespace or _USUAL_NAMESPACE)
        return _from_file(meant[0], objects, primary, place, str(path))
    usual = namespace or _USUAL_NAMESPACE
    there = sorted(f"{str(each['kind']).lower()}/{_name(each)} in {_namespace(each, usual)}" for each in workloads)
    held = f"it holds {first_names(there)}" if there else f"it holds none, but {count(len(objects), 'other object')}"
    if named is None:
        problem = "several workloads" if there else "no workload"
        raise InvalidInput(f"{path} has {problem} (name one as KIND/NAME; {held})")
    what = f"{named[0].kind} {f'{namespace}/' if namespace else ''}{named[1]}"
    if meant:
        raise InvalidInput(f"{path} has several of {what} (say which with --namespace; {held})")
    elsewhere = sorted({_namespace(each, usual) for each in workloads if _name(each) == named[1]})
    raise InvalidInput(f"{path} has no {what} ({f'try -n {elsewhere[0]}' if len(elsewhere) == 1 else held})")


def _refuse_lent(live: LiveWorkload, desired: Desired) -> None:
    """Raise InvalidInput for an object that another template bursts for: it would be counted twice."""
    group, _, kind = group_kind(live.manifest).rpartition("/")
    ref = WorkloadRef(namespace=live.namespace, name=live.name, kind=kind, group=group)
    other = template_of(desired, live.primary, ref)
    if other is not None:
        raise InvalidInput(
            f"{live.title} on {live.primary} is lent already by template {other.workload} in"
            f" {other.path}:{other.line} (change that one, or take it away first)"
        )


def _bursts(manifest: Mapping[str, Json], kinds: Kinds) -> bool:
    """Return whether an object is a workload that no other one makes."""
    return kind_of(manifest, kinds) is not None and not (manifest.get("metadata") or {}).get("ownerReferences")


def _name(manifest: Mapping[str, Json]) -> str:
    return str((manifest.get("metadata") or {}).get("name"))


def _from_file(
    manifest: Mapping[str, Json], objects: list[Mapping[str, Json]], primary: ClusterName, namespace: str, source: str
) -> LiveWorkload:
    """Return a workload with the other objects of its namespace."""

    def placed(other: Mapping[str, Json]) -> Mapping[str, Json]:
        return {**other, "metadata": {**(other.get("metadata") or {}), "namespace": _namespace(other, namespace)}}

    near = (other for other in objects if other is not manifest and _namespace(other, namespace) == namespace)
    companions = tuple(map(placed, near))
    return LiveWorkload(primary=primary, manifest=placed(manifest), companions=companions, source=source)


def _namespace(manifest: Mapping[str, Json], otherwise: str) -> str:
    return str((manifest.get("metadata") or {}).get("namespace") or otherwise)


def _objects(path: Path) -> list[Mapping[str, Json]]:
    """Read the objects of a file, those of lists one by one; a dash is the standard input."""
    shown = "standard input" if str(path) == "-" else str(path)
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"reading {shown}: {error.strerror or error}") from error
    values: list[Json] = []
    for document in yaml.parse(data, shown):
        value = document.value
        is_list = isinstance(value, dict) and str(value.get("kind", "")).endswith("List")
        items = value.get("items") if is_list else [value]
        values += items if isinstance(items, list) else []
    return [value for value in values if isinstance(value, dict) and _is_sound(value, shown)]


def _is_sound(manifest: Mapping[str, Json], path: str) -> bool:
    """Return whether the fields of an object have their types; warn of the first that has another one."""
    findings = check_types(manifest)
    if findings:
        title = shortened(f"{manifest.get('kind')} {at(manifest, ('metadata', 'name'))}")
        printing.warn(f"{path}: {title} is left out: {dotted(findings[0].loc)}: {findings[0].message}")
    return not findings


def _lent(live: LiveWorkload, desired: Desired, directory: FleetDirectory, wanted: Wanted) -> LentFiles:
    """Write the new files in memory: with a policy where none of the fleet's applies. None may be there already."""
    workspace = choose_workspace(desired, live.primary, live.namespace, wanted.workspace)
    lent = lent_files(
        live,
        desired,
        workspace=workspace,
        name=wanted.name,
        workspace_name=wanted.workspace,
        reference=wanted.reference,
        companions=wanted.companions,
    )
    texts = {path: parse_file(text.encode()) for path, text in lent.files.items()}
    if lent.workload not in directory.desired(texts).policies:
        lent = lent_files(
            live,
            desired,
            workspace=workspace,
            name=wanted.name,
            workspace_name=wanted.workspace,
            policy=_usual_policy(),
            reference=wanted.reference,
            companions=wanted.companions,
        )
    return lent


def _refuse_what_is_there(fleet: Path, texts: Mapping[str, bytes]) -> None:
    """Raise InvalidInput for a file, a link or anything else at a path that is to be written."""
    for path in texts:
        if os.path.lexists(fleet / path):
            raise InvalidInput(f"{path} is there already (try --name with another name, or take the file away first)")


def _usual_policy() -> Json:
    """Return the spec of the policy that `init` writes, without what is about the layout's own clusters."""
    path = package_files.layout() / _USUAL_POLICY
    document = yaml.parse(path.read_bytes(), str(_USUAL_POLICY))[0].value
    return {name: value for name, value in document["spec"].items() if name not in _OF_THE_LAYOUT}


def _refuse_errors(found: Iterable[Problem], fleet: Path) -> None:
    """Raise InvalidInput with the errors that the new files would have, before any is written."""
    problems = tuple(replace(problem, path=os.path.normpath(fleet / problem.path)) for problem in found)
    errors = tuple(problem for problem in problems if problem.severity is Severity.ERROR)
    if errors:
        raise InvalidInput(problems=errors)
    printing.problems(problems)


def _write(fleet: Path, texts: Mapping[str, bytes]) -> None:
    """Write new files, each whole or not at all."""
    for path, text in texts.items():
        target = fleet / path
        partial = target.with_name(f".{target.name}.partial")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(text)
            partial.replace(target)
        except OSError as error:
            raise InvalidInput(f"writing {target}: {error.strerror or error}") from error
        printing.say(f"Wrote {target}")


def _show_burst(settings: Settings, source: Mapping[str, bytes], lent: LentFiles, missing: int) -> None:
    """Print what would be committed if replicas of the workload were missing now, by all files together."""
    if settings.kubeconfig is None and settings.observations is None:
        printing.sentence(
            "What would be placed is unknown, since no cluster is seen (pass --kubeconfig or --observations)."
        )
        return
    with trying(settings, MemoryRepository(source)) as trial:
        supposition = parse_supposition(f"{lent.workload}+{missing}")
        world, memory, questions = supposed_world(*trial, [supposition])
        decision, rendered = draft(world, decision_at(world, memory, None))
    first = len(rendered.commits) - len(rendered.changes)
    own = [
        (commit, change)
        for commit, change in zip(rendered.commits[first:], rendered.changes, strict=True)
        if (placement := change.rewritten) is not None and placement.workload == lent.workload
    ]
    shown = replace(
        rendered,
        commits=tuple(commit for commit, _ in own),
        changes=tuple(change for _, change in own),
        suppressed=tuple(suppressed for suppressed in rendered.suppressed if suppressed.workload == lent.workload),
    )
    printing.write()
    for question in questions:
        printing.sentence(question)
    printing.write()
    print_plan(decision, shown, "table", empty="Nothing would be placed.")
    problems = (*decision.problems, *rendered.problems)
    printing.problems(problem for problem in problems if problem.path not in source)


def _next_steps(settings: Settings, fleet: Path, supposition: str) -> str:
    """Say what leads from the new files to a plan of what is committed, as far as git in this directory has come."""
    remote = settings.repo or checkout.origin(fleet)
    repository = () if remote else ("--repo", "." if fleet == Path() else str(fleet))
    sources = _sources(settings, Path() if repository else fleet)
    command = shlex.join(("overspill", "plan", *repository, *sources, "--what-if", supposition))
    if remote:
        within = "here" if fleet == Path() else f"in {fleet}"
        return f"Next: commit and push the new files. Then `{command}` {within} answers again, with what is placed."
    if checkout.is_work_tree(fleet):
        return f"Next: commit the new files. Then `{command}` answers again; others see them once there is a remote."
    made = shlex.join(("git", "init", f"--initial-branch={settings.source_branch}", str(fleet)))
    return f"Next: `{made}`, and commit the files. Then `{command}` answers again."


def _sources(settings: Settings, fleet: Path) -> tuple[str, ...]:
    """Return the options by which `plan` in a fleet sees the same clusters, unless the environment says as much."""
    named = {"kubeconfig": settings.kubeconfig, "observations": settings.observations}
    return tuple(
        word
        for name, path in named.items()
        if path is not None and f"{PREFIX}{name.upper()}" not in os.environ
        for word in (f"--{name}", str(path if fleet == Path() else path.absolute()))
    )
