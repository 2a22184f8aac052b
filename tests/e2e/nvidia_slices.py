"""ResourceSlices, DeviceClasses and templates in the shape in which NVIDIA's DRA driver makes them.

The driver itself needs GPUs. The shape is that of its sources at 2240711 (0.5.0-dev) of
https://github.com/NVIDIA/k8s-dra-driver-gpu: cmd/gpu-kubelet-plugin (deviceinfo.go, mig.go, partitions.go, driver.go),
cmd/compute-domain-kubelet-plugin and deployments/helm. The MIG profiles are those of an H100 with 80 GB, as
``nvidia-smi mig -lgip`` and ``-lgipp`` list them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.e2e.api_server import Json

GPU, MIG, IMEX = "gpu.nvidia.com", "mig.nvidia.com", "compute-domain.nvidia.com"
CHANNEL = "compute-domain-default-channel.nvidia.com"
SMALLEST = "mig-1g-10gb.gpu.nvidia.com"
_ATTRIBUTES = f"device.attributes['{GPU}']"
PRODUCT = "NVIDIA H100 80GB HBM3"
MEMORY_SLICES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A MIG profile: its number, its part of a GPU, and the memory slices at which it may begin."""

    name: str
    number: int
    size: int
    starts: tuple[int, ...]
    mebibytes: int
    multiprocessors: int
    engines: int


PROFILES = (
    Profile(name="1g.10gb", number=19, size=1, starts=tuple(range(7)), mebibytes=9984, multiprocessors=16, engines=1),
    Profile(name="1g.20gb", number=15, size=2, starts=(0, 2, 4, 6), mebibytes=20096, multiprocessors=26, engines=1),
    Profile(name="2g.20gb", number=14, size=2, starts=(0, 2, 4), mebibytes=20096, multiprocessors=32, engines=2),
    Profile(name="3g.40gb", number=9, size=4, starts=(0, 4), mebibytes=40448, multiprocessors=60, engines=3),
    Profile(name="4g.40gb", number=5, size=4, starts=(0,), mebibytes=40448, multiprocessors=64, engines=4),
    Profile(name="7g.80gb", number=0, size=8, starts=(0,), mebibytes=81152, multiprocessors=132, engines=7),
)  # fmt: skip # a table, a row a line
LAYOUT = (("3g.40gb", 0), ("2g.20gb", 4), ("1g.10gb", 6))
"""How the GPUs of nodes are cut whose slices do not change."""


def classes() -> Iterator[Json]:
    """Make the driver's DeviceClasses, and that of a profile as its demo of extended resources has it."""
    yield _class(GPU, f"device.driver == '{GPU}' && {_ATTRIBUTES}.type == 'gpu'", "nvidia.com/gpu")
    yield _class(MIG, f"device.driver == '{GPU}' && {_ATTRIBUTES}.type == 'mig'")
    smallest = f"device.driver == '{GPU}' && {_ATTRIBUTES}.type == 'mig' && {_ATTRIBUTES}.profile == '1g.10gb'"
    yield _class(SMALLEST, smallest, "nvidia.com/mig-1g.10gb")
    channels = f"device.attributes['{IMEX}']"
    yield _class(CHANNEL, f"device.driver == '{IMEX}' && {channels}.type == 'channel' && {channels}.id == 0")


def whole(node: str, gpus: int) -> Iterator[Json]:
    """Make the slices of a node whose GPUs are given out whole."""
    yield _slice(node, GPU, [_device(f"gpu-{minor}", _gpu(node, minor), _memory()) for minor in range(gpus)])
    yield _channels(node)


def static(node: str, gpus: int) -> Iterator[Json]:
    """Make the slices of a node all of whose GPUs have been cut beforehand."""
    devices = []
    for minor in range(gpus):
        for name, start in LAYOUT:
            [profile] = [one for one in PROFILES if one.name == name]
            occupied = {f"memorySlice{index}": 1 for index in range(start, start + profile.size)}
            attributes = _mig(node, minor, profile) | {"uuid": {"string": f"MIG-{node}-{minor}-{start}"}}
            devices.append(_device(_name(minor, profile, start), attributes, _capacities(profile) | occupied))
    yield _slice(node, GPU, devices)
    yield _channels(node)


def dynamic(node: str, gpus: int) -> Iterator[Json]:
    """Make the slices of a node whose GPUs are cut as they are claimed: the counters in a slice, and one a GPU."""
    largest = PROFILES[-1]
    everything = _counters(largest, 0)
    sets = [{"name": f"gpu-{minor}-counter-set", "counters": everything} for minor in range(gpus)]
    yield _slice(node, GPU, [], suffix="counters", of=gpus + 1, sharedCounters=sets)
    for minor in range(gpus):
        consumed = [{"counterSet": f"gpu-{minor}-counter-set", "counters": everything}]
        devices = [_device(f"gpu-{minor}", _gpu(node, minor), _capacities(largest), consumed)]
        for profile in PROFILES:
            for start in profile.starts:
                taken = [{"counterSet": f"gpu-{minor}-counter-set", "counters": _counters(profile, start)}]
                made = _device(
                    _name(minor, profile, start), _mig(node, minor, profile), _capacities(profile), consumed=taken
                )
                devices.append(made)
        devices.sort(key=lambda device: device["name"])
        yield _slice(node, GPU, devices, suffix=f"gpu-{minor}", of=gpus + 1)
    yield _channels(node)


def claim(count: int = 1, *expressions: str, of: str = GPU) -> Json:
    """Request devices of a class."""
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return {"exactly": {"deviceClassName": of, "count": count, "selectors": selectors}}


def profile(name: str, count: int = 1) -> Json:
    """Request MIG slices of a profile."""
    return claim(count, f"{_ATTRIBUTES}.profile == '{name}'", of=MIG)


def _class(name: str, expression: str, resource: str = "") -> Json:
    extended = {"extendedResourceName": resource} if resource else {}
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}], **extended}}


def _slice(node: str, driver: str, devices: list[Json], *, suffix: str = "", of: int = 1, **fields: Json) -> Json:
    name = "-".join(part for part in (node, driver.partition(".")[0], suffix) if part)
    pool = {"name": node, "generation": 1, "resourceSliceCount": of}
    offered = {"devices": devices} if devices else {}
    return {"metadata": {"name": name}, "spec": {"driver": driver, "pool": pool, "nodeName": node, **offered, **fields}}


def _channels(node: str) -> Json:
    """Make the one channel of a node that is offered, and its daemon."""
    devices = [
        {"name": f"{kind}-0", "attributes": {"type": {"string": kind}, "id": {"int": 0}}}
        for kind in ("channel", "daemon")
    ]
    return _slice(node, IMEX, devices)


def _device(name: str, attributes: Json, capacities: dict[str, int], consumed: list[Json] | None = None) -> Json:
    capacity = {name: {"value": str(value)} for name, value in capacities.items()}
    consumes = {"consumesCounters": consumed} if consumed else {}
    return {"name": name, "attributes": attributes, "capacity": capacity, **consumes}


def _common(node: str, minor: int) -> Json:
    return {
        "productName": {"string": PRODUCT},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "driverVersion": {"version": "580.65.6"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "resource.kubernetes.io/pciBusID": {"string": f"0000:{minor:02x}:00.0"},
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{minor:02x}"},
    }


def _gpu(node: str, minor: int) -> Json:
    return _common(node, minor) | {"type": {"string": "gpu"}, "uuid": {"string": f"GPU-{node}-{minor}"}}


def _mig(node: str, minor: int, profile: Profile) -> Json:
    facts = {"type": "mig", "profile": profile.name, "parentUUID": f"GPU-{node}-{minor}"}
    return _common(node, minor) | {name: {"string": value} for name, value in facts.items()}


def _name(minor: int, profile: Profile, start: int) -> str:
    return f"gpu-{minor}-mig-{profile.name.replace('.', '')}-{profile.number}-{start}"


def _memory() -> dict[str, int]:
    return {"memory": 81559 * 2**20}


def _capacities(profile: Profile) -> dict[str, int]:
    return {
        "multiprocessors": profile.multiprocessors,
        "copyEngines": profile.engines,
        "decoders": profile.engines,
        "encoders": 0,
        "jpegEngines": profile.engines,
        "ofaEngines": int(profile.size == MEMORY_SLICES),
        "memory": profile.mebibytes * 2**20,
    }


def _counters(profile: Profile, start: int) -> Json:
    """Count what a slice takes of its GPU: its capacities by the names of counters, and memory slices by number."""
    names = {"copyEngines": "copy-engines", "jpegEngines": "jpeg-engines", "ofaEngines": "ofa-engines"}
    counters = {names.get(name, name): value for name, value in _capacities(profile).items()}
    counters |= {f"memory-slice-{index}": 1 for index in range(start, start + profile.size)}
    return {name: {"value": str(value)} for name, value in counters.items()}
