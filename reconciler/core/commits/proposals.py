"""A proposal as a branch and a pull request: the commit that says yes once it is merged, and the reviewers' words."""

from __future__ import annotations

from datetime import datetime

from reconciler.core.commits.message_parts import proposal_terms
from reconciler.core.commits.trailers import Trailer, proposal_name, write_trailers
from reconciler.core.decide.state.gate import describe_places
from reconciler.core.ledger.proposal_record import approval_path, write_approval
from reconciler.model.approval import BurstProposal
from reconciler.model.tree import Commit, Identity, checked_path
from reconciler.text.markdown import code
from reconciler.text.targets import TextTarget, escape
from reconciler.text.wording import sentence, wrap_text

_MOST_TITLE = 200


def proposal_commit(proposal: BurstProposal, author: Identity, at: datetime) -> Commit:
    """Write the commit of the branch of a proposal.

    It has no action among its trailers: merged as it is, it must not count as a commit that a pass has made.
    """
    title, paragraphs = _title(proposal), [sentence(proposal.reason), *proposal_terms(proposal)]
    body = "\n".join(map(wrap_text, filter(None, paragraphs)))
    trailers = write_trailers([(Trailer.PROPOSAL, proposal_name(proposal))])
    path = checked_path(approval_path(proposal))
    return Commit(
        message=f"{title}\n\n{body}\n\n{trailers}\n",
        author=author,
        at=at,
        writes={path: write_approval(proposal)},
        key=title,
    )


def pull_request_text(proposal: BurstProposal) -> tuple[str, str]:
    """Write the title and the body of the pull request of a proposal, in Markdown."""
    terms = "\n".join(f"- {escape(term, TextTarget.MARKDOWN)}" for term in proposal_terms(proposal))
    body = (
        f"{escape(sentence(proposal.reason), TextTarget.MARKDOWN)}\n\n{terms}\n\n"
        "**Merge** to have it placed, exactly as it says here; if that is not possible any more, the next commit on"
        " this branch says why. **Close** to refuse it: the workload is then held back. Do not edit the file.\n\n"
        f"Policy {code(proposal.policy)} asks for this approval.\n"
    )
    return escape(_title(proposal), TextTarget.TITLE)[:_MOST_TITLE], body


def _title(proposal: BurstProposal) -> str:
    return f"approve({proposal.workload}): {describe_places(proposal.placements)}"
