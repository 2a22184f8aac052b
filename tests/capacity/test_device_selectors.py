"""The CEL that classes and claims are written in is understood, or known not to be."""

from __future__ import annotations

import pytest

from reconciler.core.capacity.device_selectors import parse_selector
from reconciler.model.capacity import DeviceKind
from reconciler.model.units import parse_quantity

D = "gpu.nvidia.com"
A = f'device.attributes["{D}"]'
C = f'device.capacity["{D}"]'
H100 = DeviceKind(
    driver=D,
    attributes=((f"{D}/cores", 132), (f"{D}/mig", False), (f"{D}/productName", "NVIDIA H100"), (f"{D}/type", "gpu")),
    capacity=((f"{D}/memory", parse_quantity("80Gi")),),
)


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        (f'device.driver == "{D}"', True),
        (f"device.driver == '{D}'", True),
        ('device.driver != "nic.example.com"', True),
        ('device.driver in ["nic.example.com"]', False),
        (f'{A}.type == "gpu"', True),
        (f'{A}["type"] == "gpu"', True),
        (f'device.driver == "{D}" && {A}.type == "gpu"', True),
        (f'  device.driver == "{D}"\n  &&\n  {A}.type == "mig" ', False),
        (f'{A}.productName == "NVIDIA A100" || {A}.productName.startsWith("NVIDIA H")', True),
        (f'{A}.productName.contains("H100") && !({A}.type == "mig")', True),
        (f'{A}.productName.endsWith("H200")', False),
        (f'{A}.productName in ["NVIDIA H100", "NVIDIA H200"]', True),
        (f"{A}.cores >= 132 && {A}.cores < 200", True),
        (f"{A}.cores == 100", False),
        (f'{A}.cores == "132"', False),
        (f"{A}.mig", False),
        (f"!{A}.mig", True),
        (f"{A}.mig == false", True),
        (f"{A}.mig == 0", False),
        (f'{C}.memory.compareTo(quantity("80Gi")) >= 0', True),
        (f'{C}.memory.compareTo(quantity("81Gi")) >= 0', False),
        (f'{C}.memory.isGreaterThan(quantity("40Gi"))', True),
        (f'{C}.memory.isLessThan(quantity("40Gi"))', False),
    ],
)
def test_common_conditions_are_understood(expression, met) -> None:
    read = parse_selector(expression)
    assert read is not None
    assert read(H100) is met


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        (f'{A}.profile == "1g.10gb"', None),
        ('device.attributes["other.example.com"].type == "gpu"', None),
        (f'device.driver == "other" && {A}.profile == "1g.10gb"', False),
        (f'{A}.profile == "1g.10gb" && device.driver == "other"', False),
        (f'{A}.type == "gpu" || {A}.profile == "1g.10gb"', True),
        (f'!({A}.profile == "1g.10gb")', None),
        (f'{A}.cores.startsWith("1")', None),
        (f"{A}.type >= 3", None),
        (f"{A}.cores", None),
        (f'{C}.disk.compareTo(quantity("1")) >= 0', None),
    ],
)
def test_what_a_device_does_not_have_is_an_error_as_in_cel(expression, met) -> None:
    read = parse_selector(expression)
    assert read is not None
    assert read(H100) is met


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "true",
        f'"type" in {A}',
        f"has({A}.type)",
        f'{A}.type.matches("^g")',
        f'{A}.type.lowerAscii() == "gpu"',
        f'{A}.type == "g\\"pu"',
        f'{A}.driverVersion.isGreaterThan(semver("1.0.0"))',
        f'{A}.type == "gpu" &&',
        f'({A}.type == "gpu"',
        f'{A}.type == "gpu")',
        f"{A}.type == {A}.productName",
        f'{A}.cores >= "1"',
        f"{A}.cores + 1 == 2",
        f'!{A}.type == "gpu"',
        "!device.driver",
        f'{C}.memory.compareTo(quantity("many")) >= 0',
        f'{C}.memory.compareTo(quantity("1")) >= 1',
        f'{C}.memory == quantity("80Gi")',
        "device.capacity",
        "device.name == 'x'",
        "(" * 200 + "device.mig" + ")" * 200,
        f'{A}.type == "{"x" * 20_000}"',
    ],
)
def test_whatever_else_is_said_is_known_not_to_be_understood(expression) -> None:
    assert parse_selector(expression) is None
