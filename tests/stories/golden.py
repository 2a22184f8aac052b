"""Plays the stories of tests/golden: repo-layout as the fleet, a file of observations a step, and what comes of it.

A story may lay files of its own over the layout, in ``fleet/``. ``python -m tests.stories.golden`` writes the expected
files anew; read the difference before it is committed.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from reconciler.adapters.git import GitRepository
from reconciler.adapters.helm import Helm
from reconciler.core import observation
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.reconcile import Memory, World, reconcile_once
from reconciler.daemon.source import SourceReader
from reconciler.model.capacity import Observed
from reconciler.model.push import Push
from tests.conftest import Remote
from tests.memory import OURS

GOLDEN = Path(__file__).parent.parent / "golden"
LAYOUT = Path(__file__).parent.parent.parent / "repo-layout"
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

    def pushed(self, push: Push) -> None:
        """Take note of nothing."""


def play(story: Path, work: Path) -> dict[str, str]:
    """Play one story, and return the files of the branch after each step and its whole log, by path."""
    remote = Remote(work / "remote.git")
    fleet = {
        str(path.relative_to(root)): path.read_bytes()
        for root in (LAYOUT, story / "fleet")
        for path in sorted(root.rglob("*.yaml"))
    }
    remote.commit("main", fleet)
    results: dict[str, str] = {}
    with GitRepository(remote.url, cache=work / "cache") as repository:
        memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))
        for step in sorted(story.glob("*.yaml")):
            # The one placement that a step may speak of is the first that was made: its name is not known before.
            placed = sorted({path.split("/")[2] for path in remote.files("placements", "clusters/worker-2")})
            text = step.read_text().replace("vllm-PLACED", placed[0] if placed else "vllm-PLACED")
            seen = {one.cluster: one for one in observation.read(text.encode(), step.name)}
            scene = Scene(moment=max(one.observed_at for one in seen.values()), observed=Observed(clusters=seen))
            world = World(repository=repository, clusters=scene, charts=Helm(), clock=scene, outbox=scene, author=OURS)
            reconcile_once(world, memory)
            for path, data in remote.files("placements").items():
                results[f"{step.stem}/{path}"] = _plain(data.decode())
    results["log.txt"] = _plain(remote.git("log", "--reverse", "--format=%an, %cI%n%n%B", "placements")) + "\n"
    return results


def _plain(text: str) -> str:
    """Put words for what follows from the bytes of repo-layout alone, so that a comment there changes no story."""
    # A commit's id is quoted where it could be read as a number.
    text = _COMMIT.sub("<commit>", text).replace('"<commit>"', "<commit>")
    return _VERSION.sub(r"\1<version>", _DIGEST.sub("<digest>", text))


def main() -> None:
    """Write what is expected anew."""
    for story in sorted(path for path in GOLDEN.iterdir() if path.is_dir()):
        shutil.rmtree(story / "expected", ignore_errors=True)
        with tempfile.TemporaryDirectory() as work:
            for path, text in play(story, Path(work)).items():
                file = story / "expected" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)


if __name__ == "__main__":
    main()
