"""kill -9 at random moments of a real process with a real repository, as often as a test asks for."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from reconciler.adapters.git import GitRepository
from reconciler.api.routes import placements
from reconciler.core.decide.state.order import Order
from reconciler.core.ledger.request_record import read_request
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.egs.resource import document, rest_document
from reconciler.core.schema.yaml import emit
from reconciler.errors import Transient
from reconciler.model.ids import WorkspaceName
from reconciler.model.request import Provisioning, Request, Verb
from reconciler.model.tree import Identity, LoggedCommit
from tests.builders.passes import SOURCE_FILES, START, Passes, seconds
from tests.builders.remote import Remote
from tests.builders.requests import deployment, manifests, request

FIRST, CYCLE = 2, 8
"""The step at which a request is made by a file and another by a call, and the steps between that and the next ones."""
SPARED = frozenset({FIRST + 2, FIRST + 2 * CYCLE - 3, FIRST + 2 * CYCLE - 2})
"""Steps that are left alone, so that a request is changed while it runs, and one removed, whatever the kills hit."""


def asked(name: str, minutes: int) -> Request:
    """Ask for one GPU of worker-3, for so long, by an object of its own."""
    lasting = timedelta(minutes=minutes)
    manifest = deployment(replicas=1) | {"metadata": {"name": name, "namespace": "demo"}}
    return request("worker-3", name=name, spec=manifests(manifest, lasting=lasting))


def edits(step: int) -> dict[str, str | None]:
    """Say what people do to the files of requests at a step.

    Each is asked for and given another end while it runs; then time ends it, or every second time its file goes first.
    """
    number, age = divmod(step - FIRST, CYCLE)
    name, removed = f"file-{number}", number % 2 == 1
    minutes = {0: 120 if removed else 4, 2: 180 if removed else 6}.get(age)
    if minutes is not None:
        return {f"asked/{name}.yaml": emit(document(asked(name, minutes)))}
    return {f"asked/{name}.yaml": None} if removed and age == CYCLE - 2 else {}


def calls(step: int) -> tuple[Order, ...]:
    """List the calls of the API that have been made up to a step: who hears no answer repeats theirs."""
    return tuple(map(call, range((step - FIRST) // CYCLE + 1)))


def call(number: int) -> Order:
    draft = placements.read_create(rest_document(asked(f"call-{number}", 3)))
    assert isinstance(draft, RequestDraft), draft
    return Order(
        number=number,
        verb=Verb.CREATE,
        name=f"call-{number}",
        workspace=WorkspaceName("llm"),
        author=Identity(name="Ada", email="ada@example.com"),
        within=None,
        draft=draft,
        key=f"sha256-{number}",
    )


def play(remote: Path, cache: Path, step: int, kills: int) -> None:
    """Be a daemon at one step of a story in which every step before the last kill has something to do."""
    with GitRepository(str(remote), cache=cache) as repository:
        passes = Passes(repository)
        passes.moment = START + seconds(70 * step)
        passes.since = passes.moment - seconds(60)
        passes.missing = (0, 3, 5, 1, 7, 0, 2)[step % 7] if step < kills else 0
        passes.steady_since = passes.moment - seconds(61)
        passes.orders = calls(min(step, kills))
        for _ in range(5):
            try:
                repository.fetch()
                passes.advance(0)
                passes.run()
            except Transient:
                continue  # a push of the one that was killed may still be going on
            break


def commits(remote: Remote, branch: str = "placements") -> list[str]:
    """List a branch's commits with their parents, oldest first."""
    return remote.git("log", "--reverse", "--format=%H %P", branch).splitlines() if remote.tip(branch) else []


def kill_at_random(remote: Remote, tmp_path: Path, more: Mapping[str, str], kills: int) -> None:
    """Kill a daemon about `kills` times, and see that the branch is whole and nothing is lost or has happened twice.

    Bursts come and go, and people ask for placements by files and by calls. `more` are files of the fleet repository
    beside the usual ones.
    """
    remote.commit("main", SOURCE_FILES | more)
    clusters = [f"placements-by-cluster/worker-{number}" for number in (1, 2, 3)] if more else []
    cache, chance = tmp_path / "cache", random.Random(20261120)  # the same moments in every run
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.fakes.killed_daemon"])
    before: dict[str, list[str]] = {}
    # Processes are slow where others are at work: the moments lie within the time that an undisturbed one takes here.
    stretch = 0.0
    for step in (1, FIRST):  # the first one waits for what all of them are forked from
        remote.commit("main", edits(step))
        began = time.monotonic()
        undisturbed = context.Process(target=play, args=(remote.path, cache, step, kills))
        undisturbed.start()
        undisturbed.join()
        stretch = time.monotonic() - began
    killed = 0
    for step in range(FIRST + 1, kills):
        if edits(step):
            remote.commit("main", edits(step))
        process = context.Process(target=play, args=(remote.path, cache, step, kills))
        process.start()
        if step not in SPARED:
            time.sleep(chance.uniform(0, stretch))
            killed += process.is_alive()
            process.kill()
        process.join()
        for branch in ("placements", *clusters):
            after, known = commits(remote, branch), before.get(branch, [])
            assert after[: len(known)] == known, "history is only ever added to"
            before[branch] = after
    assert killed > kills / 3, "the kills came too late to hit anything"
    # Calls that found worker-3 full get their turn, eight at a time.
    for step in range(kills, kills + 3 + kills // 40):
        play(remote.path, cache, step + 700 * (step - kills), kills)  # left alone, it puts everything right
    assert all(len(line.split()) <= 2 for line in commits(remote)), "a merge commit"
    counts = Counter(
        (commit.trailers["Overspill-Action"], commit.trailers.get("Overspill-Placement", ""))
        for commit in history(remote, tmp_path)
    )
    assert {action for action, _ in counts} >= {"Place", "Resize", "Revert"}
    assert [key for key, count in counts.items() if key[0] in ("Place", "Revert") and count > 1] == []
    see_requests(remote, tmp_path, kills)
    remote.git("fsck", "--strict")
    assert [remote.files(branch, "clusters") for branch in ("placements", *clusters)] == [{}] * (1 + len(clusters))
    if clusters:
        assert followed(remote, clusters) == followed(remote, ["placements"]), "a commit is missing, doubled or made up"


def see_requests(remote: Remote, tmp_path: Path, kills: int) -> None:
    """See that each request was taken, ran and ended once, and is known for as long as somebody asks for it."""
    counts = Counter(
        (commit.trailers["Overspill-Request"].removeprefix("llm/"), commit.trailers["Overspill-Action"])
        for commit in history(remote, tmp_path)
        if "Overspill-Request" in commit.trailers
    )
    assert {action for _, action in counts} >= {"Receive", "Place", "Amend", "Extend", "Revert", "Close", "Forget"}
    once = ("Receive", "Place", "Revert", "Close", "Forget")
    assert [key for key, count in counts.items() if key[1] in once and count > 1] == []
    kept = {path.removeprefix("asked/").removesuffix(".yaml") for path in remote.files("main", "asked")}
    kept |= {order.name for order in calls(kills)}
    assert {name for name, _ in counts} >= kept, "a request is lost"
    for name, action in counts:
        if action == "Place":
            assert counts[name, "Revert"] == 1, sorted(one for one in counts.items() if one[0][0] == name)
        if name not in kept:
            assert counts[name, "Receive"] == counts[name, "Forget"]
    records = [read_request(data, path) for path, data in remote.files("placements", "ledger/llm/requests").items()]
    ended = {record.request.name: record.ended.status for record in records if record.ended is not None}
    assert {record.request.name for record in records} == kept
    assert ended == dict.fromkeys(kept, Provisioning.COMPLETED)
    assert all(counts[name, action] == 1 for name in kept for action in ("Receive", "Place", "Revert", "Close"))


def followed(remote: Remote, branches: list[str]) -> Counter[str]:
    """Count the subjects of commits that changed what is in a cluster."""
    return Counter(
        subject
        for branch in branches
        for subject in remote.git("log", "--format=%s", branch, "--", "clusters").splitlines()
    )


def history(remote: Remote, tmp_path: Path) -> list[LoggedCommit]:
    """Read the output branch's commits back."""
    with GitRepository(remote.url, cache=tmp_path / "reader") as repository:
        tip = repository.fetch().output
        assert tip is not None
        return repository.log(tip)
