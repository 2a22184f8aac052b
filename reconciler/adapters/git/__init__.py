"""The fleet repository, by running git's plumbing in a bare mirror.

Called by `app`, which hands a `GitRepository` to the daemon and the commands as a `ports.Repository`. The only package
that runs git. What may not happen in here: a work tree, an index, git's own configuration or hooks of whoever runs us,
a token in an argument list or a message, a forced push.

`run` starts processes, `remote` knows addresses and what a remote answers, `mirror` owns the directory on disk,
`tracking` follows the branches, `objects` reads files, `commits` reads commits, `history` walks back through a shallow
past, `fastimport` writes, `pushing` moves branches, and `repository` puts them together. `checkout` asks a person's own
clone where it comes from; `local` reads the newest state that this disk has, for completion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.adapters.git.remote import Credentials
    from reconciler.adapters.git.repository import GitRepository

__all__ = ["Credentials", "GitRepository"]


def __getattr__(name: str) -> Any:
    """Import what the package offers when it is asked for: completion reads `local` alone, and has no time for more."""
    if name == "GitRepository":
        from reconciler.adapters.git.repository import GitRepository  # noqa: PLC0415 - completion skips it

        return GitRepository
    if name == "Credentials":
        from reconciler.adapters.git.remote import Credentials  # noqa: PLC0415 - completion skips it

        return Credentials
    raise AttributeError(name)
