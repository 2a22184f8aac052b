"""What every test may use: a bare remote, and our adapter on it. And what keeps a run of all tests short."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.builders.certificates import write_pair
from tests.builders.remote import Remote

if TYPE_CHECKING:
    from reconciler.adapters.git import GitRepository

# How long an example takes says how busy the machine is; speed is measured in tests/bench. Each property gets few new
# examples in each run of all tests, and many in `make properties`.
for profile, examples in (("quick", 10), ("thorough", 150)):
    settings.register_profile(
        profile, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")

TESTS = Path(__file__).parent
LONGEST = frozenset({"test_demo_story.py", "test_killed.py", "test_mute_watches.py"})
"""Modules whose tests wait for clocks and processes, half a minute each."""
MEMORY = Path("/dev/shm")
ROOM = 2 * 2**30
"""Bytes; those of all directories at one moment are a tenth of it."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep what a run of all tests writes in memory: it makes and removes thousands of repositories.

    Needs a file system there that has room and runs programs, which containers may forbid.
    """
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    with contextlib.suppress(OSError):  # it is there on Linux only
        status = os.statvfs(MEMORY)
        runs_programs = not status.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK)
        if runs_programs and status.f_bavail * status.f_frsize > ROOM:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Collect tests with no collection of garbage, and spare later ones the modules and items that stay to the end."""
    gc.disable()
    try:
        if session.config.args_source is pytest.Config.ArgsSource.TESTPATHS and not _only_hands_out(session.config):
            _import_modules(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest waits, since at the end the other workers would have nothing to do meanwhile.

    Of a test that is marked as exhaustive, a run of all tests keeps the first of each so many cases, or none; one that
    names tests, or asks for them by a marker, keeps all.
    """
    items.sort(key=lambda item: item.path.name not in LONGEST)
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or config.getoption("markexpr"):
        return
    cases = Counter[str]()
    left: list[pytest.Item] = []
    for item in items:
        mark = item.get_closest_marker("exhaustive")
        if mark is not None:
            test, one_in = item.nodeid.partition("[")[0], mark.kwargs["one_in"]
            if one_in is None or cases[test] % one_in:
                left.append(item)
            cases[test] += 1
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(map(id, left))
        items[:] = [item for item in items if id(item) not in gone]


def _only_hands_out(config: pytest.Config) -> bool:
    """Return whether workers run the tests, and this process collects none."""
    return bool(config.getoption("numprocesses", default=None)) and not hasattr(config, "workerinput")


def _import_modules(config: pytest.Config) -> None:
    """Import all modules of tests, in each worker from another one on.

    pytest rewrites the assertions of a module that it has not seen before, which costs more than all else of a
    collection. So each worker rewrites a share, and reads what the others wrote. A module that fails to import is left
    to the collection, which reports it.
    """
    own = getattr(config, "workerinput", {"workerid": "gw0", "workercount": 1})
    apart = config.getini("norecursedirs")
    modules = [path for path in sorted(TESTS.glob("*/test_*.py")) if path.parent.name not in apart]
    begin = int(own["workerid"].removeprefix("gw")) * len(modules) // own["workercount"]
    for path in (*modules[begin:], *modules[:begin]):
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(f"tests.{path.parent.name}.{path.stem}")


@pytest.fixture(scope="session", autouse=True)
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trust one authority, which signs nothing. To read those of the system takes each HTTP client 20 ms."""
    directory = tmp_path_factory.mktemp("authorities")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(write_pair(directory, "nobody")[0]))
        patch.setenv("SSL_CERT_DIR", str(directory / "none"))
        yield


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    """Make an empty bare repository."""
    return Remote(tmp_path / "remote.git")


@pytest.fixture
def repository(remote: Remote, tmp_path: Path) -> Iterator[GitRepository]:
    """Open our adapter on that remote, with nothing fetched yet."""
    # Imported here: the process that hands out tests reads this module, and needs nothing of the package.
    from reconciler.adapters.git import GitRepository  # noqa: PLC0415 - as said

    with GitRepository(remote.url, cache=tmp_path / "cache") as opened:
        yield opened
