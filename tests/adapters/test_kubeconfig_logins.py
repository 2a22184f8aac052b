"""The daemon's kubeconfig is checked for logins of others, whatever is in it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from reconciler.adapters.kubeconfig_logins import TokenLogin, add_logins, foreign_contexts, refuse_unwritable
from reconciler.errors import InvalidInput


def test_context_that_is_none_is_foreign(tmp_path: Path) -> None:
    path = tmp_path / "daemon.kubeconfig"
    path.write_text(
        "contexts: [{name: worker-1, context: oops}, {name: worker-2, context: {user: overspill-worker-2}}]\n"
    )
    assert foreign_contexts(path, ["worker-1", "worker-2", "worker-3"]) == ("worker-1",)


def test_logins_that_are_added_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "new" / "daemon.kubeconfig"
    names = [f"worker-{number}" for number in range(16)]
    with ThreadPoolExecutor(len(names)) as pool:
        logins = (TokenLogin(context=name, server={"server": "https://a"}, token=name) for name in names)
        for done in [pool.submit(add_logins, path, [login]) for login in logins]:
            done.result()
    contexts = yaml.safe_load(path.read_text())["contexts"]
    assert sorted(context["name"] for context in contexts) == sorted(names)
    assert [file.name for file in path.parent.iterdir()] == ["daemon.kubeconfig"]


def test_file_that_cannot_be_written_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match=r"daemon: Not a directory \(try another --kubeconfig-out\)"):
        refuse_unwritable(tmp_path / "file" / "daemon")
    refuse_unwritable(tmp_path / "new" / "daemon")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
