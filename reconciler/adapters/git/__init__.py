"""The fleet repository, by running git's plumbing in a bare mirror.

Called by `app`, which hands a `GitRepository` to the daemon and the commands as a `ports.Repository`. The only package
that runs git. Not allowed in here: writing to a work tree or an index, the user's git configuration or hooks, a token
in an argument list or a message, a forced push.

`run` starts processes, `remote` checks addresses, `remote_errors` reads what a remote says, `known_hosts` asks ssh
which keys it knows, `mirror` owns the directory on disk, `branches` follows those of the remote, `objects` reads files,
`commits` reads commits, `history` walks back through a shallow past, `fastimport` writes, `push` moves branches, and
`repository` puts them together. `known_tips` remembers what our branches had, `branch_judge` says by `mirror_commits`
whether they have lost that, and `restore` settles it. `signed_source` and `rewritten_source` remember the source
branch, and `decisions` reads what was decided on where they do not. `checkout` asks the user's own clone for its
origin; `local` reads the newest state on this disk, for completion, and `work_tree` what git holds of a checkout, for
`check`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.adapters.git.remote import Credentials
    from reconciler.adapters.git.repository import GitRepository

__all__ = ["Credentials", "GitRepository"]


def __getattr__(name: str) -> Any:
    """Import a name of the package at its first use: completion needs `local` alone, and has no time for more."""
    if name == "GitRepository":
        from reconciler.adapters.git.repository import GitRepository  # noqa: PLC0415 - completion skips it

        return GitRepository
    if name == "Credentials":
        from reconciler.adapters.git.remote import Credentials  # noqa: PLC0415 - completion skips it

        return Credentials
    raise AttributeError(name)
