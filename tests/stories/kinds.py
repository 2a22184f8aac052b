"""Plays tests/golden/kinds: for each kind of workload a sample of its own project, from one cluster to three and back.

A story is a file: how many pods of how many GPUs a cluster holds, and behind ``---`` the template. Home goes short of
as many as one cluster holds, then two, then three but for one pod, and back. Of a template called ``<name>-NUMBER``,
which goes whole, there are three, and home goes short of one after the other. Beside it lies what is expected,
``<story>.txt``: what is where after each pass, and the objects of the first cluster at the peak. ``python -m
tests.stories.kinds`` writes it anew; read the difference before it is committed. That git keeps what is written, the
stories of `tests.stories.golden` show.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.schema import yaml
from reconciler.core.workloads.builtin_kinds import NO_KINDS, kind_of
from reconciler.core.workloads.paths import at, items, within
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from reconciler.model.workload import Json, WorkloadRef
from reconciler.text.timestamps import format_time
from reconciler.text.wording import join_names
from tests.builders.inputs import NOW
from tests.fakes.memory_repository import MemoryRepository
from tests.stories.golden import GOLDEN, Step, plain, run_steps

KINDS = GOLDEN / "kinds"
FLEET = KINDS / "_fleet.yaml"
STORIES = sorted(path for path in KINDS.glob("*.yaml") if path != FLEET)
LENDERS = ("north", "east", "south")
LACKING = (1, 2, 3, 2, 1, 0)
"""How many clusters hold what home is short of, a pass after the other."""
PEAK = 2
GPU = "nvidia.com/gpu"
RECORD = "/placement.yaml"
OBJECT = "# "
"""What the name of an object's file stands behind in what is expected."""
_NUMBER = "NUMBER"
_LATER = timedelta(minutes=10)
_NODE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One kind's sample: what its template deploys, and how many pods of how many GPUs a cluster holds of it."""

    template: str
    pods: int
    gpus: int

    @property
    def whole(self) -> bool:
        """Whether all its pods go to one cluster, or none of them."""
        return _NUMBER in self.template

    @property
    def nodes(self) -> int:
        """How many nodes a cluster has, of eight GPUs each."""
        return self.pods * self.gpus // _NODE

    def short(self, step: int) -> int:
        """Say how many pods home is short of at a step, or how many objects: the third time of one pod fewer."""
        clusters = LACKING[step]
        return clusters if self.whole else clusters * self.pods - (step == PEAK)

    @property
    def files(self) -> dict[str, bytes]:
        """The fleet repository."""
        files = {"fleet.yaml": FLEET.read_bytes()}
        for number in (1, 2, 3) if self.whole else (0,):
            files[f"templates/{number}.yaml"] = self.template.replace(_NUMBER, str(number)).encode()
        return files

    @property
    def desired(self) -> Desired:
        """The fleet repository as it is loaded."""
        return assemble(CommitId(""), {path: parse_file(data) for path, data in self.files.items()})

    @property
    def refs(self) -> list[WorkloadRef]:
        """The objects that are followed at home."""
        refs = (template.ref for template in self.desired.templates.values())
        return sorted((ref for ref in refs if ref is not None), key=lambda ref: ref.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a story: its passes with the subjects of their commits, and what lay in git after each.

    `trees` are the files of the branch; `placed` is what each cluster has, as the name of the workload and how many.
    """

    story: Story
    subjects: tuple[tuple[str, ...], ...]
    trees: tuple[Mapping[str, bytes], ...]

    def placed(self, step: int) -> dict[str, dict[str, int]]:
        """Return what lies on each cluster after a step, by workload."""
        found: dict[str, dict[str, int]] = {cluster: {} for cluster in LENDERS}
        for cluster, _, document in _records(self.trees[step]):
            notes = document["metadata"]["annotations"]
            found[cluster][notes["overspill.dev/workload"]] = int(notes["overspill.dev/replicas"])
        return found

    def objects(self, step: int) -> Iterator[tuple[str, str, Json]]:
        """Yield what is deployed after a step: the cluster, the path, and the object."""
        for path, data in _ordered(self.trees[step]):
            _, cluster, *_, name = path.split("/")
            if "/manifests/" in path and not name.startswith("00-"):
                (document,) = yaml.parse(data, path)
                yield cluster, path, document.value


def read(path: Path) -> Story:
    """Read a story from its file."""
    room, _, template = path.read_text().partition("---\n")
    (document,) = yaml.parse(room.encode(), path.name)
    return Story(template=template, **document.value)


def play(story: Story) -> Played:
    """Play a story."""
    repository = MemoryRepository(story.files)
    subjects: list[tuple[str, ...]] = []
    trees: list[Mapping[str, bytes]] = []
    steps = [Step(name=str(number), observed=_seen(story, number, repository)) for number in range(len(LACKING))]
    for _ in run_steps(repository, steps):
        log = repository.subjects()[-2::-1]  # all but the one that the branch began with, oldest first
        subjects.append(tuple(log[sum(map(len, subjects)) :]))
        trees.append(repository.tree(under="clusters"))
    return Played(story=story, subjects=tuple(subjects), trees=tuple(trees))


def expected(played: Played) -> str:
    """Write what is expected: the whole story, and what the first cluster has at its peak."""
    first = LENDERS[0]
    made = [path for cluster, path, _ in played.objects(PEAK) if cluster == first]
    if not made:  # a chart, of which the record tells
        made = [path for path in played.trees[PEAK] if path.startswith(f"clusters/{first}/") and path.endswith(RECORD)]
    files = ((f"{first}/{path.rpartition('/')[2]}", plain(played.trees[PEAK][path].decode())) for path in made)
    return picture(played) + "".join(f"\n{OBJECT}{name}\n{text}" for name, text in files)


def picture(played: Played) -> str:
    """Draw what is where after each pass, with the commits that brought it there, and the counts that were written."""
    story = played.story
    what = f"{story.pods} pods of {story.gpus} {'GPUs' if story.gpus > 1 else 'GPU'}"
    room = f"room for {what} in each of"
    lines = [f"{story.refs[0].kind} {names(story)}: {room} {join_names(LENDERS)}", ""]
    lines.append(_row("", "short of", LENDERS))
    for number in range(len(LACKING)):
        there = played.placed(number)
        cells = [", ".join(_cell(story, name, n) for name, n in there[one].items()) or "-" for one in LENDERS]
        short = f"{story.short(number)} x {story.pods}" if story.whole else str(story.short(number))
        lines.append(_row(f"{_moment(number):%H:%M}", short, cells))
        lines += [f"       {subject}" for subject in played.subjects[number]]
    lines += ["", f"written at {_moment(PEAK):%H:%M}", *(f"  {line}" for line in counts(played))]
    return "\n".join(lines) + "\n"


def _cell(story: Story, name: str, count: int) -> str:
    return name if story.whole and count == 1 else f"{name} x{count}"


def names(story: Story) -> str:
    """Name the objects at home."""
    return ", ".join(f"{ref.namespace}/{ref.name}" for ref in story.refs)


def counts(played: Played) -> Iterator[str]:
    """Say which numbers were written where, of each object that has replicas, and of charts."""
    for cluster, _, made in played.objects(PEAK):
        kind = kind_of(made, NO_KINDS)
        ways = [within(way, item, way) for way in (kind.replicas if kind else ()) for item in items(made, way)]
        found = [f"{'.'.join(way)}: {at(made, way)}" for way in ways if at(made, way) is not None]
        if found:
            yield f"{cluster:<6} {made['kind']} {made['metadata']['name']}  {', '.join(found)}"
    for cluster, _, document in _records(played.trees[PEAK]):
        for chart in document["spec"].get("helmConfig", ()):
            for loc, value in _numbers(chart["values"], "replicaCount"):
                yield f"{cluster:<6} chart {chart['name']}  {loc}: {value}"


def _numbers(value: Json, name: str, where: str = "") -> Iterator[tuple[str, int]]:
    """Yield the places below a chart's values that have a name."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in below:
        if key == name:
            yield f"{where}{key}", item
        yield from _numbers(item, name, f"{where}{key}.")


def _row(moment: str, short: str, cells: Iterable[str]) -> str:
    return f"{moment:<5}  {short:<9} {''.join(f'{cell:<16}' for cell in cells)}".rstrip()


def _moment(step: int) -> datetime:
    return NOW + step * _LATER


def _ordered(tree: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
    """Sort files by cluster, in the order in which the clusters take bursts, and path."""
    return sorted(tree.items(), key=lambda one: (LENDERS.index(one[0].split("/")[1]), one[0]))


def _records(tree: Mapping[str, bytes]) -> Iterator[tuple[str, str, Json]]:
    """Yield each placement that lies in git: its cluster, its name, and its record."""
    for path, data in _ordered(tree):
        if path.endswith(RECORD):
            (document,) = yaml.parse(data, path)
            yield path.split("/")[1], path.split("/")[2], document.value


def _seen(story: Story, step: int, repository: MemoryRepository) -> Callable[[], str]:
    """Say what is to be seen at a step: who is short of pods at home, and what has come of our placements elsewhere."""
    moment, lacking = _moment(step), LACKING[step]
    fell = (
        {"deficitSince": format_time(moment - timedelta(minutes=6))} if lacking < max(LACKING[:step], default=0) else {}
    )
    requests = {"requests": {GPU: story.gpus}}
    since = [format_time(_moment(number) - timedelta(minutes=1)) for number in range(PEAK + 1)]
    short: list[Json] = []
    if story.whole:
        single = any(template.runs_once for template in story.desired.templates.values())
        for number, ref in enumerate(story.refs[: step + 1]):
            waits = [{"replicas": 1, "since": since[number]}] if number < lacking else []
            replica = {**requests, "groupSize": story.pods}
            short.append({**_named(ref), "wanted": 1, "running": 1 - len(waits), "unschedulable": waits, **fell})
            short[-1]["replica"] = replica
            if single and waits:
                short[-1]["held"] = True
    else:
        waits = [{"replicas": story.pods, "since": one} for one in since[:lacking]]
        if step == PEAK:
            waits[-1]["replicas"] -= 1
        wanted = {"wanted": story.pods + story.short(step), "running": story.pods, "unschedulable": waits, **fell}
        short.append({**_named(story.refs[0]), **wanted, "replica": requests})

    def text() -> str:
        tree = repository.tree(under="clusters")
        there: dict[str, list[tuple[str, int]]] = {}
        for cluster, name, document in _records(tree):
            replicas = int(document["metadata"]["annotations"]["overspill.dev/replicas"])
            there.setdefault(cluster, []).append((name, replicas * (story.pods if story.whole else 1)))
        home = _cluster(story, "home", moment, story.pods)
        lenders = [_cluster(story, one, moment, sum(pods for _, pods in there.get(one, ()))) for one in LENDERS]
        for cluster, seen in zip(LENDERS, lenders, strict=True):
            seen["placements"] = [{"name": name, "bound": pods} for name, pods in there.get(cluster, ())]
        return json.dumps({"items": [{**home, "workloads": short}, *lenders]})

    return text


def _named(ref: WorkloadRef) -> dict[str, Json]:
    return {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def _cluster(story: Story, name: str, moment: datetime, pods: int) -> dict[str, Json]:
    """Observe a cluster on whose nodes so many pods are, one node after the other."""
    used, nodes = pods * story.gpus, []
    for number in range(story.nodes):
        taken = min(_NODE, used)
        used -= taken
        nodes.append({"name": f"{name}-{number + 1}", "used": {GPU: taken}})
    allocatable = {"cpu": 96, "memory": "1Ti", GPU: _NODE}
    return {
        "apiVersion": "overspill.dev/v1alpha1",
        "kind": "Observation",
        "cluster": name,
        "observedAt": format_time(moment),
        "pools": [{"name": "h100", "allocatable": allocatable, "nodes": nodes}],
    }


def main() -> None:
    """Write what is expected anew."""
    for path in STORIES:
        path.with_suffix(".txt").write_text(expected(play(read(path))))


if __name__ == "__main__":
    main()
