"""What a caller of the API wants done to one placement, as a value that a pass carries out."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.schema.egs.request import RequestDraft
from reconciler.model.ids import WorkspaceName
from reconciler.model.request import Verb
from reconciler.model.tree import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """To create, update or delete the placement of this `name`.

    Without a `workspace` it is looked for in those that the `author` may write to (`within`, None for all). The `draft`
    is what the body of the call says, and `given` the fields that it names. `key` digests the idempotency key of a
    creation. `strict` refuses to delete what has GPUs or is over, as EGS does (docs/egs.md, R19).
    """

    number: int
    verb: Verb
    name: str
    workspace: WorkspaceName | None
    author: Identity
    within: frozenset[WorkspaceName] | None
    draft: RequestDraft | None = None
    given: frozenset[str] = frozenset()
    key: str = ""
    strict: bool = False

    def may(self, workspace: WorkspaceName) -> bool:
        """Tell whether it may be about something in a workspace."""
        return self.workspace in (None, workspace) and (self.within is None or workspace in self.within)
