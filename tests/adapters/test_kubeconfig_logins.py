"""The daemon's kubeconfig is checked for logins of others, whatever is in it."""

from __future__ import annotations

from pathlib import Path

from reconciler.adapters.kubeconfig_logins import foreign_contexts


def test_context_that_is_none_is_foreign(tmp_path: Path) -> None:
    path = tmp_path / "daemon.kubeconfig"
    path.write_text(
        "contexts: [{name: worker-1, context: oops}, {name: worker-2, context: {user: overspill-worker-2}}]\n"
    )
    assert foreign_contexts(path, ["worker-1", "worker-2", "worker-3"]) == ("worker-1",)
