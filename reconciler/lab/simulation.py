"""A run: the world and a controller take turns, from event to event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reconciler.lab.accounts import HOUR, Accounts, ServiceSample, jain, percentile
from reconciler.lab.controllers import CommitNote, Controller
from reconciler.lab.scenario import Scenario
from reconciler.lab.world import SimulatedWorld

_MOST_DECISIONS = 10
"""Decisions in one second; a controller that has not come to rest then goes on in the next second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The figures of one run."""

    scenario: str
    controller: str
    unmet: float
    """The part of the missing replica-seconds that was not served, from 0 to 1."""
    missing_replica_hours: float
    gpu_hours: float
    money: float
    """Dollars, of clusters that have a price."""
    starts: int
    """Pods of bursts that got a node."""
    commits: int
    moves: int
    ended_while_needed: int
    fairness: float
    """Jain's index over the served shares of the workloads."""
    longest_unserved: int
    """Seconds: the longest time in which a workload with missing replicas had none served."""
    never_served: int
    """Workloads with missing replicas of which none was ever served."""
    time_to_serve_p50: int | None
    """Seconds, of the replicas that were served."""
    time_to_serve_p99: int | None
    lost: Mapping[str, float]
    """The part of the missing replica-seconds that was lost to each cause, the greatest first."""
    samples: tuple[ServiceSample, ...] = ()
    history: tuple[CommitNote, ...] = ()
    """Its commits, the oldest first."""


def simulate(
    scenario: Scenario,
    make: Callable[[SimulatedWorld], Controller],
    progress: Callable[[int], None] = lambda _: None,
) -> Result:
    """Play a scenario with a controller; `progress` is told the second that has been reached."""
    world = SimulatedWorld(scenario)
    controller = make(world)
    accounts = Accounts(world)
    now = 0
    while now < scenario.length:
        world.advance(now)
        wake_at = _decide(controller, now)
        moments = [world.next_event(now), wake_at]
        due = [moment for moment in moments if moment is not None and moment > now]
        later = min([*due, scenario.length])
        later = min(max(later, now + scenario.tick), scenario.length)
        accounts.add(now, later, controller.held_back())
        progress(later)
        now = later
    accounts.end()
    return result(scenario, controller, accounts)


def _decide(controller: Controller, now: int) -> int | None:
    """Let a controller decide until it commits nothing more."""
    wake_at = None
    for _ in range(_MOST_DECISIONS):
        commits = controller.counts.commits
        wake_at = controller.act(now)
        if controller.counts.commits == commits:
            return wake_at
    return wake_at


def result(scenario: Scenario, controller: Controller, accounts: Accounts) -> Result:
    """Work out the figures of a run."""
    counts = controller.counts
    missing = sum(account.missing for account in accounts.workloads.values())
    unserved = sum(account.unserved for account in accounts.workloads.values())
    prices = {cluster.name: cluster.price or 0.0 for cluster in scenario.clusters}
    needy = [account for account in accounts.workloads.values() if account.missing]
    served_after = sum((account.served_after for account in needy), Counter[int]())
    return Result(
        scenario=scenario.name,
        controller=controller.name,
        unmet=unserved / missing if missing else 0.0,
        missing_replica_hours=missing / HOUR,
        gpu_hours=accounts.gpu_seconds.total() / HOUR,
        money=sum(seconds * prices[name] for name, seconds in accounts.gpu_seconds.items()) / HOUR,
        starts=accounts.starts,
        commits=counts.commits,
        moves=counts.moves,
        ended_while_needed=counts.ended_while_needed,
        fairness=jain([account.served_share for account in needy]),
        longest_unserved=max((account.longest_unserved for account in needy), default=0),
        never_served=sum(account.unserved == account.missing for account in needy),
        time_to_serve_p50=percentile(served_after, 0.5),
        time_to_serve_p99=percentile(served_after, 0.99),
        lost={cause: replicas / missing for cause, replicas in accounts.lost.most_common()} if missing else {},
        samples=tuple(accounts.samples),
        history=tuple(controller.history()),
    )
