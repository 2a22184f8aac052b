"""Plays the script: the simulated world and the real daemon, with git between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import click

from reconciler.demo.branch_log import FORMAT, LandedCommit, read_log
from reconciler.demo.farewell import last_lines, path_from_here, write_guide
from reconciler.demo.keys import Key
from reconciler.demo.live import opened_view
from reconciler.demo.page import DemoPage
from reconciler.demo.process import left_by_signals, run_daemon
from reconciler.demo.stage import PROGRAM, DemoDirectory, claimed, commit, edit_fields, prepare, revert
from reconciler.demo.story import PLAYGROUND, Act, Timing, acts, timing
from reconciler.demo.view import ClusterScene, DemoTime, PlacementScene, View, WallTime
from reconciler.demo.world import DemoWorld
from reconciler.errors import InvalidInput, OverspillError
from reconciler.text.wording import join_names

_TURN = 0.5
_DEAD = 3.0
"""Seconds for which a killed daemon stays away, so that one sees that the world goes on without it."""
_HURRY = "demo: seconds instead of minutes"
_LONGER = "demo: time to play"
_BURST = "burst("
_YOURS = "Your turn, until you press q"
_LAST = "8. What is left"


class MissedStepError(OverspillError):
    """An expected step did not happen in its time."""


class DemoDaemon(Protocol):
    """The daemon of a play."""

    def lines(self) -> Iterator[str]:
        """Yield the lines that it has logged since the last call; never waits."""
        ...

    def ended(self) -> int | None:
        """Return its exit code, None while it runs."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...

    def restart(self) -> None:
        """Start it again, after it has ended."""
        ...


def demo(out: Path, *, tempo: float = 1.0, plain: bool = False) -> int:
    """Play the demo into a directory, and return 0, or 1 if a step did not happen in its time.

    `tempo` scales the windows of the story: 0.5 takes about half as long. A terminal shows a picture, and the world
    goes on after the story until a person ends it; `plain` is as without a terminal. Raises InvalidInput if the
    directory is not a demo's, another demo plays there, or git cannot be run.
    """
    stage = DemoDirectory(out=out.absolute())
    with left_by_signals(), claimed(stage):
        return _play(stage, tempo, plain=plain)


def _play(stage: DemoDirectory, tempo: float, *, plain: bool) -> int:
    script, clock = timing(tempo), WallTime()
    prepare(stage)
    try:
        with opened_view(clock, plain=plain) as view:
            commit_fleet(stage, view, script)
            page = DemoPage()
            environment = {**stage.environment, **page.environment}
            command = (*_run(stage), "--listen", page.listen)
            with run_daemon(command, directory=stage.out, environment=environment, log=stage.log) as daemon:
                view.say("Ann", f"looks at the page: {page.address}")
                play = DemoPlay(stage, view, clock, daemon, page)
                play.perform(acts(script))
                play.prove()
                if view.interactive:
                    play.improvise()
    except MissedStepError as error:
        click.echo()
        words = f"{error}. The daemon's own words are in {path_from_here(stage.log)}."
        click.echo(click.style("error: ", fg="red", bold=True) + words, err=True)
        return 1
    write_guide(stage, clock.now())
    click.echo("\n".join(("", *last_lines(stage))))
    return 0


def commit_fleet(stage: DemoDirectory, view: View, script: Timing) -> None:
    """Commit the layout of the fleet repository with short windows."""
    view.chapter("0. A fleet repository")
    view.say("Ann", f"overspill init {path_from_here(stage.fleet)}; its remote is {path_from_here(stage.remote)}")
    edit_fields(stage, script.edits)
    commit(stage, _HURRY)
    fields = [
        f"{field.removeprefix('spec.')} {value}" for edits in script.edits.values() for field, value in edits.items()
    ]
    view.say("Ann", f"commits and pushes '{_HURRY}': {', '.join(dict.fromkeys(fields))}")  # templates have one alike


class DemoPlay:
    """A run of the demo: what the daemon has said so far, and the commits of the branch."""

    def __init__(
        self, stage: DemoDirectory, view: View, clock: DemoTime, daemon: DemoDaemon, page: DemoPage | None = None
    ) -> None:
        """Begin with clusters as the layout has them, and without an output branch.

        With a `page`, whoever plays along is led to it once the daemon answers.
        """
        self._page = page
        self._stage, self._view, self._clock, self._daemon = stage, view, clock, daemon
        self._world = DemoWorld(stage)
        self._world.observe(clock.now())
        self._begin = ""
        self._page_open = False
        self._heard = ""
        self._commits: list[LandedCommit] = []
        self._awake_at: float | None = None
        self._taken_over = False
        self._over = False

    def perform(self, script: Sequence[Act]) -> None:
        """Play the acts, until a person takes the demand into their own hands."""
        for act in script:
            if not self._taken_over:
                self._play(act)

    def prove(self) -> None:
        """Check what the whole script has left on the output branch, and say so."""
        if self._taken_over:
            return
        stage, view = self._stage, self._view
        view.chapter(_LAST)
        before, after = self._files(self._begin), self._files(self._world.tip)
        if before != after:
            raise MissedStepError(f"step '{_LAST}': clusters/ is not what it was before: {join_names(after or before)}")
        view.say(
            "check",
            f"The tree under clusters/ is what it was before the first burst: {join_names(after) or 'empty'}. Every"
            " burst has ended in a revert.",
        )
        wrong = stage.git("fsck", "--strict", "--no-dangling", directory=stage.remote)
        if wrong:
            raise MissedStepError(f"step '{_LAST}': git fsck --strict says: {wrong}")
        view.say("check", "git fsck --strict finds nothing wrong with the repository.")

    def improvise(self) -> None:
        """Let the world go on until a person ends it."""
        if self._over:
            return
        if not self._taken_over:
            self._view.chapter(_YOURS, f"the page is at {self._page.address}" if self._page else "")
        edit_fields(self._stage, PLAYGROUND)
        commit(self._stage, _LONGER)
        while not self._over:
            self._pass_time()

    def _play(self, act: Act) -> None:
        """Set the demand of one act, and wait for its placement."""
        primary, view = self._world.primary, self._view
        primary.scale(act.missing, self._clock.now())
        view.chapter(act.title, act.says)
        self._count_replicas()
        self._show()
        if act.status:
            view.quote("Ann", "overspill status", partial(self._ask, "status"))
        until = self._clock.lapse() + act.within
        while not (self._is_over(act) or self._taken_over):
            if self._awake_at is None and self._daemon.ended() is not None:
                raise MissedStepError(f"step '{act.title}': the daemon has left with exit code {self._daemon.ended()}")
            if self._clock.lapse() > until:
                line = f" and the daemon saying {act.expected_line!r}" if act.expected_line else ""
                raise MissedStepError(
                    f"step '{act.title}': expected {_counts(act.placed)}{line} within {act.within} s, and there is"
                    f" {_counts(self._world.placed)}"
                )
            self._pass_time()

    def _pass_time(self) -> None:
        """Wait for a turn or for a key, and advance the world."""
        for key in self._view.wait(_TURN):
            self._press(key)
        self._turn()

    def _press(self, key: Key) -> None:
        """Do what a person asks for."""
        match key:
            case Key.MORE:
                self._scale(+1)
            case Key.LESS:
                self._scale(-1)
            case Key.REVERT:
                self._revert()
            case Key.KILL:
                self._kill()
            case Key.QUIT:
                self._taken_over = self._over = True

    def _take_over(self) -> None:
        """End the script, or its epilogue: from here on the demand is a person's."""
        if not self._taken_over:
            self._taken_over = True
            self._view.chapter(_YOURS, "the demand is yours now. The clusters and the daemon go on as before.")

    def _scale(self, more: int) -> None:
        primary = self._world.primary
        self._take_over()
        primary.scale(max(0, primary.missing + more), self._clock.now())
        self._count_replicas()

    def _revert(self) -> None:
        """Revert the newest burst that stands, as a person does."""
        standing = {placement.name for cluster in self._world.scenes() for placement in cluster.placements}
        bursts = [
            commit for commit in self._commits if commit.subject.startswith(_BURST) and commit.placement in standing
        ]
        if not bursts:
            self._view.say("Ann", "there is no burst to revert: ask for more replicas than find a node.")
            return
        self._take_over()
        try:
            subject = revert(self._stage, bursts[-1].id, bursts[-1].placement)
        except InvalidInput as error:  # the daemon has pushed meanwhile
            self._view.say("Ann", f"could not push a revert ({error}). Try again.")
        else:
            self._view.say("Ann", f"commits and pushes by hand: {subject}")

    def _kill(self) -> None:
        if self._awake_at is None:
            self._daemon.kill()
            self._awake_at = self._clock.lapse() + _DEAD
            self._view.say("Ann", "kill -9: the daemon is gone, and could save nothing.")

    def _wake(self) -> None:
        """Start a killed daemon again, once it has been away for long enough."""
        if self._awake_at is not None and self._clock.lapse() >= self._awake_at:
            self._awake_at = None
            self._daemon.restart()
            self._view.say("Ann", "starts the daemon again. Nothing is lost: all that it knows is in git.")

    def _turn(self) -> None:
        """Advance the world by one turn, and tell its changes."""
        self._wake()
        since = self._world.tip
        for sentence in self._world.turn(self._clock.now()):
            self._view.say("clusters", sentence)
        moved = self._world.tip != since
        if moved:
            self._begin = self._begin or self._world.tip
            for key in self._view.wait(_TURN):  # the daemon logs a push after it is visible
                self._press(key)
        for line in self._daemon.lines():
            self._heard += f"{line}\n"
            self._view.say("Overspill", line.partition(" ")[2] or line)
        if self._page is not None and self._view.interactive and not self._page_open and self._heard:
            self._page_open = True
            self._page.open()
        if moved:
            commits = f"{since}..{self._world.tip}" if since else self._world.tip
            for landed in read_log(self._stage.git("log", "--reverse", FORMAT, commits, directory=self._stage.remote)):
                self._commits.append(landed)
                self._view.land(landed)
        self._show()

    def _show(self) -> None:
        """Show the clusters with the times of their placements."""
        times = {
            landed.placement: (float(landed.at), landed.expires.timestamp())
            for landed in self._commits
            if landed.expires is not None
        }
        self._view.show([_with_times(cluster, times) for cluster in self._world.scenes()])

    def _is_over(self, act: Act) -> bool:
        """Return whether an act is over: the engine has applied the branch, and the placement is the expected one."""
        world = self._world
        return bool(world.tip) and world.settled and world.placed == act.placed and act.expected_line in self._heard

    def _ask(self, command: str) -> str:
        """Run a command of Overspill as Ann, and return its output."""
        stage = self._stage
        return stage.overspill(command, "--repo", str(stage.remote), "--observations", str(stage.observations))

    def _count_replicas(self) -> None:
        primary = self._world.primary
        counts = f"{primary.wanted} wanted, {primary.running} run, {primary.missing} find no node"
        self._view.say("clusters", f"{primary.name}: {counts}")

    def _files(self, commit: str) -> list[str]:
        """List the files under clusters/ of a commit, each with the id of its content."""
        return self._stage.git("ls-tree", "-r", commit, "clusters/", directory=self._stage.remote).splitlines()


def _with_times(cluster: ClusterScene, times: Mapping[str, tuple[float, float]]) -> ClusterScene:
    """Return a cluster whose placements have the times of the commits that made them, or extended them last."""

    def timed(placement: PlacementScene) -> PlacementScene:
        begins, ends = times.get(placement.name, (0.0, 0.0))
        return replace(placement, begins=begins, ends=ends)

    return replace(cluster, placements=tuple(map(timed, cluster.placements)))


def _run(stage: DemoDirectory) -> tuple[str, ...]:
    repo, seen = str(stage.remote), str(stage.observations)
    recording = ("--record", str(stage.recording))
    return (*PROGRAM, "run", "--repo", repo, "--observations", seen, "--poll-interval", "1s", *recording)


def _counts(placed: Mapping[str, int]) -> str:
    return join_names(f"{replicas} on {cluster}" for cluster, replicas in placed.items()) or "nothing placed"
