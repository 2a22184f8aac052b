"""Plays the stories of tests/golden: repo-layout as the fleet, a file of observations a step, and what comes of it.

A story may lay files of its own over the layout, in ``fleet/``, and say beside a step what Prometheus answers to
which query (``<step>.json``). What is expected is the tree of the first step, file by file; of each later step what
differs from the step before (``<step>.diff``); and the log of the branch. ``python -m tests.stories.golden`` writes
the expected files anew; read the difference before it is committed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from pathlib import Path
from typing import Self

from reconciler.adapters.git import GitRepository
from reconciler.adapters.helm.rendering import Helm
from reconciler.adapters.observations.views import JoinedView
from reconciler.adapters.signals import AskedSignals, PrometheusServer
from reconciler.core.observe import observation_file
from reconciler.core.signals.prometheus import questions
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.model.capacity import Observed
from reconciler.ports import ClusterView, Repository
from tests.builders.remote import Remote
from tests.fakes.memory_repository import OURS
from tests.fakes.prometheus import serving

GOLDEN = Path(__file__).parent.parent / "golden"
LAYOUT = Path(__file__).parent.parent.parent / "repo-layout"
STORIES = sorted(path.parent for path in GOLDEN.glob("*/1-*.yaml"))
"""All but those of the kinds of workloads, which are played by `tests.stories.kinds`."""
_POLICY = "policies/serving.yaml"
_TOLD = {b"window: 10s": b"window: 30s", b"window: 15m": b"window: 5m", b"headroom: 1": b"headroom: 0"}
"""The windows that stories are told with, and no spare replicas, which would be in every number."""
_COMMIT = re.compile(r'"?\b[0-9a-f]{40}\b"?')  # in quotes where YAML could take it for a number
_DIGEST = re.compile(r"sha256-[0-9a-f]{64}")
_VERSION = re.compile(r'(template-version: )"?[0-9a-f]{12}"?')


@dataclass(slots=True)
class Scene:
    """What is to be seen at one step."""

    moment: datetime
    observed: Observed

    def now(self) -> datetime:
        return self.moment

    def follow(self, desired: object) -> None:
        """Show the same whatever is asked for."""

    def observe(self) -> Observed:
        return self.observed


class Queries:
    """A Prometheus, and the view that asks it: a round of questions a step."""

    def __enter__(self) -> Self:
        self._metrics = self._serving.__enter__()
        server = PrometheusServer(self._metrics.url)
        self._view = AskedSignals(
            server,
            source="Prometheus",
            questions=questions,
            clock=self,
            patience=timedelta(seconds=10),
            every=timedelta(seconds=0.02),
        )
        return self

    def __init__(self) -> None:
        self._serving = serving()
        self._moment = datetime.min.replace(tzinfo=UTC)

    def __exit__(self, *_: object) -> None:
        self._view.close()
        self._view.join(timedelta(seconds=10))
        self._serving.__exit__(None, None, None)

    def now(self) -> datetime:
        return self._moment

    def answered(self, values: Path, moment: datetime) -> AskedSignals[float]:
        """Let the answers of a step be heard at its moment; none to any query where it has no file."""
        said = json.loads(values.read_text()) if values.exists() else {}
        self._metrics.values = {}
        self._rounds()  # no answer of this step is to be heard at the moment of the one before, nor the other way round
        self._moment, self._metrics.values = moment, said
        self._rounds()
        return self._view

    def _rounds(self) -> None:
        """Let the round that may be under way end, and another one; before the first step there are none."""
        if self._view.is_asking:
            self._metrics.wait_for(len(self._metrics.asked) + 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One pass: what is observed, which may depend on what the steps before left in git, and who else is asked."""

    name: str
    observed: Callable[[], str]
    beside: Callable[[Scene], ClusterView] = lambda scene: scene


def run_steps(repository: Repository, steps: Iterable[Step]) -> Iterator[Step]:
    """Run a pass for each step over a repository with a fleet, and yield the step when its commits are pushed."""
    memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))
    for step in steps:
        text = step.observed()
        seen = {one.cluster: one for one in observation_file.read(text.encode(), step.name)}
        scene = Scene(moment=max(one.observed_at for one in seen.values()), observed=Observed(clusters=seen))
        view = step.beside(scene)
        world = World(repository=repository, clusters=view, charts=Helm(), clock=scene, author=OURS)
        reconcile_once(world, memory)
        yield step


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a story: the files of the branch after each step by path, as `plain` text, and its whole log."""

    trees: Mapping[str, Mapping[str, str]]
    log: str


def play(story: Path, work: Path) -> Played:
    """Play one story over a git repository."""
    fleet = {
        str(path.relative_to(root)): path.read_bytes()
        for root in (LAYOUT, story / "fleet")
        for path in sorted(root.rglob("*.yaml"))
    }
    for quick, told in _TOLD.items():
        fleet[_POLICY] = fleet[_POLICY].replace(quick, told)
    remote = Remote(work / "remote.git")
    remote.commit("main", dict(fleet))
    trees: dict[str, Mapping[str, str]] = {}
    with GitRepository(remote.url, cache=work / "cache") as repository, Queries() as queries:
        for step in run_steps(repository, [_step(path, remote, queries) for path in sorted(story.glob("*.yaml"))]):
            trees[step.name] = {path: plain(data.decode()) for path, data in remote.files("placements").items()}
    log = plain(remote.git("log", "--reverse", "--format=%an, %cI%n%n%B", "placements")) + "\n"
    return Played(trees=trees, log=log)


def expected(played: Played) -> dict[str, str]:
    """Return the expected files of a story, by path below ``expected/``."""
    first, *later = played.trees
    files = {f"{first}/{path}": text for path, text in played.trees[first].items()}
    before = played.trees[first]
    for name in later:
        files[f"{name}.diff"] = difference(before, played.trees[name])
        before = played.trees[name]
    return files | {"log.txt": played.log}


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Describe a tree by what differs from the one before; a file that is equal to another one by that one's path."""
    parts = [f"{len(after)} files, {digest(after)}\n"]
    parts += [f"\nremoved {path}\n" for path in sorted(before.keys() - after.keys())]
    known = {text: path for path, text in sorted(before.items(), reverse=True)}
    for path, text in sorted(after.items()):
        if path in before and before[path] != text:
            parts += ["\n", *_lines(unified_diff(*_split(before[path], text), f"before/{path}", path, n=1))]
        elif path not in before and text in known:
            parts.append(f"\nadded {path}\nequal to {known[text]}\n")
        elif path not in before:
            parts += [f"\nadded {path}\n", *_lines(f"+{line}" for line in text.splitlines(keepends=True))]
        known.setdefault(text, path)
    return "".join(parts)


def _split(*texts: str) -> tuple[list[str], ...]:
    return tuple(text.splitlines(keepends=True) for text in texts)


def _lines(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def digest(tree: Mapping[str, str]) -> str:
    """Digest every byte of a tree, paths included."""
    digested = hashlib.sha256()
    for path, text in sorted(tree.items()):
        digested.update(f"{path}\0{len(text.encode())}\0{text}".encode())
    return f"sha256:{digested.hexdigest()}"


def _step(path: Path, remote: Remote, queries: Queries) -> Step:
    """Read a step from its file, and from what Prometheus answers beside it."""

    def asked(scene: Scene) -> ClusterView:
        return JoinedView(scene, queries.answered(path.with_suffix(".json"), scene.moment))

    return Step(name=path.stem, observed=lambda: _filled(path.read_text(), remote), beside=asked)


def _filled(text: str, remote: Remote) -> str:
    """Fill in name and digest of the one placement on worker-2, and the commit it is at: they follow from the bytes."""
    tip = remote.tip("placements")
    for path, data in remote.files("placements", "clusters/worker-2").items():
        if tip is not None and path.endswith("/placement.yaml"):
            (digest,) = _DIGEST.findall(data.decode())
            text = text.replace("vllm-PLACED", path.split("/")[2]).replace("sha256-PLACED", digest)
            text = text.replace("0" * 40, tip)
    return text


def plain(text: str) -> str:
    """Put words for what follows from the bytes of repo-layout alone, so that a comment there changes no story."""
    # A commit's id is quoted where it could be read as a number.
    text = _COMMIT.sub("<commit>", text).replace('"<commit>"', "<commit>")
    return _VERSION.sub(r"\1<version>", _DIGEST.sub("<digest>", text))


def main() -> None:
    """Write what is expected anew."""
    for story in STORIES:
        shutil.rmtree(story / "expected", ignore_errors=True)
        with tempfile.TemporaryDirectory() as work:
            for path, text in expected(play(story, Path(work))).items():
                file = story / "expected" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)


if __name__ == "__main__":
    main()
