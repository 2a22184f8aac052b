"""The standard set: demands and worlds that a policy is measured on, made up but for two public traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from reconciler.errors import InvalidInput
from reconciler.lab import demand
from reconciler.lab.scenario import ClusterScenario, DemandScenario, Outage, Scenario, Series
from reconciler.model.ids import ClusterName

HOUR = 3600
DAY = 24 * HOUR
_H100, _A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"
_DEAR, _CHEAP = ClusterName("worker-2"), ClusterName("worker-3")
_HOME, _ABOVE = 4, 6

TRACES: Mapping[str, tuple[str, float]] = {
    "azure-conv": ("AzureLLMInferenceTrace_conv.csv", 0.45),
    "azure-code": ("AzureLLMInferenceTrace_code.csv", 0.45),
}
"""Real traffic by scenario: the file of the log, and the share of the time in which the primary has room for all."""
TRACES_AT = "https://github.com/Azure/AzurePublicDataset"
"""Where these files are published, in the directory data."""
_MODEL_THROUGHPUT = demand.Throughput(context_tokens=10_000, generated_tokens=100)
_TRACE_PEAK = 12


def dear_and_cheap(length: int, *, outages: tuple[Outage, ...] = (), used: int = 8) -> tuple[ClusterScenario, ...]:
    """Return two clusters: a dear one of our own, and a cheap one whose owners use some of it by day."""
    return (
        ClusterScenario(name=_DEAR, nodes=2, price=2.99, outages=outages),
        ClusterScenario(
            name=_CHEAP, nodes=2, price=1.49, owners=demand.by_day(used, length=length), capacity_type="spot"
        ),
    )


def _one(name: str, about: str, length: int, wanted: Series, clusters: tuple[ClusterScenario, ...] = ()) -> Scenario:
    return Scenario(
        name=name,
        about=about,
        length=length,
        demands=(DemandScenario(name="vllm", wanted=wanted, home=_HOME),),
        clusters=clusters or dear_and_cheap(length),
    )


def _plateau() -> Scenario:
    wanted = demand.plateau(_HOME, _ABOVE, begin=600, end=10 * HOUR)
    return _one("plateau", "six replicas too many for ten hours", 10 * HOUR, wanted)


def _flap() -> Scenario:
    wanted = demand.flap(_HOME, _ABOVE, period=1200, high=300, length=6 * HOUR)
    return _one("flap", "six replicas too many for five minutes of every twenty", 6 * HOUR, wanted)


def _ramp() -> Scenario:
    return _one("ramp", "eight more, one at a time, and back", 4 * HOUR, demand.ramp(_HOME, 8, length=4 * HOUR))


def _diurnal() -> Scenario:
    return _one("diurnal", "three days, most wanted after noon", 3 * DAY, demand.diurnal(_HOME, 6, length=3 * DAY))


def _outage(*, seen: bool) -> Scenario:
    outages = (Outage(begin=2 * HOUR, end=4 * HOUR, seen=seen),)
    wanted = demand.plateau(_HOME, _ABOVE, begin=600, end=6 * HOUR)
    name = "outage-seen" if seen else "outage-unseen"
    about = f"a cluster's nodes{'' if seen else ' and its API server'} are gone for two of six hours"
    return _one(name, about, 6 * HOUR, wanted, dear_and_cheap(6 * HOUR, outages=outages))


def _owners() -> Scenario:
    used = Series.of(point for hour in range(1, 12, 2) for point in ((hour * HOUR, 16), ((hour + 1) * HOUR, 0)))
    clusters = (
        ClusterScenario(name=_DEAR, nodes=2, price=2.99),
        ClusterScenario(name=_CHEAP, nodes=2, price=1.49, owners=used, capacity_type="spot"),
    )
    wanted = demand.plateau(_HOME, _ABOVE, begin=600, end=12 * HOUR)
    return _one("owners", "the owners of a cluster take all of it back every other hour", 12 * HOUR, wanted, clusters)


def _crowd() -> Scenario:
    """Fifty workloads whose needs come and go, with room for two fifths of what they need."""
    length, number = 6 * HOUR, 50
    demands = tuple(
        DemandScenario(
            name=f"vllm-{index:02}",
            wanted=demand.plateau(1, 1 + index % 3, begin=60 * (index % 20), end=length),
            home=1,
        )
        for index in range(number)
    )
    room = round(0.4 * sum(each.wanted.most - 1 for each in demands))
    dear = -(-room // 16)
    clusters = (
        ClusterScenario(name=_DEAR, nodes=dear, price=2.99),
        ClusterScenario(name=_CHEAP, nodes=max(1, -(-room // 8) - dear), price=1.49, capacity_type="spot"),
    )
    return Scenario(
        name="crowd", about="fifty workloads on two fifths of their need", length=length, demands=demands,
        clusters=clusters,
    )  # fmt: skip # one scenario


def _scarce() -> Scenario:
    length = 4 * HOUR
    demands = (
        DemandScenario(name="any", wanted=demand.plateau(1, 8, begin=600, end=length), home=1),
        DemandScenario(name="picky", wanted=demand.plateau(1, 8, begin=900, end=length), home=1, model=_H100),
    )
    clusters = (
        ClusterScenario(name=_DEAR, nodes=1, model=_H100, price=2.99),
        ClusterScenario(name=_CHEAP, nodes=1, model=_A100, price=2.99),
    )
    return Scenario(
        name="scarce-model", about="one takes any GPU, the other needs the model that there is little of",
        length=length, demands=demands, clusters=clusters,
    )  # fmt: skip # one scenario


def _warmth() -> Scenario:
    length = 6 * HOUR
    clusters = (
        ClusterScenario(name=_DEAR, nodes=2, price=2.0, start_up=600),
        ClusterScenario(name=_CHEAP, nodes=2, price=2.0, start_up=45),
    )
    wanted = demand.flap(_HOME, _ABOVE, period=2400, high=1200, length=length)
    return _one(
        "cold-and-warm", "the first cluster takes ten minutes to serve, the other 45 s", length, wanted, clusters
    )


MADE_UP: Mapping[str, Callable[[], Scenario]] = {
    "plateau": _plateau,
    "flap": _flap,
    "ramp": _ramp,
    "diurnal": _diurnal,
    "outage-seen": lambda: _outage(seen=True),
    "outage-unseen": lambda: _outage(seen=False),
    "owners": _owners,
    "crowd": _crowd,
    "scarce-model": _scarce,
    "cold-and-warm": _warmth,
}
"""The scenarios that need no file, by name."""


def log_of(name: str, traces: Path) -> Path | None:
    """Find the log of a public trace in a directory: by its published name, else by its ending, ``_conv.csv``."""
    published, _ = TRACES[name]
    ending = published[published.rindex("_") :]
    logs = (traces / published, *sorted(traces.glob(f"*{ending}")))
    return next((log for log in logs if log.is_file()), None)


def traffic(name: str, traces: Path) -> Scenario:
    """Make the scenario of a public trace. Raises InvalidInput where its file cannot be read."""
    file, home_share = TRACES[name]
    log = log_of(name, traces)
    if log is None:
        raise InvalidInput(f"scenario {name} needs its log: {traces} holds no {file} (it is at {TRACES_AT})")
    loads = demand.load(demand.read_requests(log), _MODEL_THROUGHPUT)
    scaled, home = demand.scaled(loads, home_share=home_share, peak=_TRACE_PEAK)
    workload = DemandScenario(name="vllm", wanted=demand.wanted_replicas(scaled), home=home)
    return Scenario(
        name=name, about=f"an hour of production traffic ({file})", length=len(scaled), demands=(workload,),
        clusters=dear_and_cheap(len(scaled)),
    )  # fmt: skip # one scenario
