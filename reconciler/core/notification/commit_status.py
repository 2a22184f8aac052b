"""Notices as commit statuses of a git host: the request for each software.

https://docs.github.com/rest/commits/statuses, https://docs.gitlab.com/api/commits ("Set commit pipeline status"), and
the Swagger file of Gitea and Forgejo (repoCreateStatus). A status is named by its context, and the latest one of a
context counts: one that is set twice is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from reconciler.core.readiness.branch_rules import HostSoftware
from reconciler.model.events.event import Notice
from reconciler.model.events.notification import Importance
from reconciler.model.ids import CommitId
from reconciler.model.workload import Json
from reconciler.text.targets import TextTarget, escape

_LONGEST = 140
"""Characters of a description that GitHub takes; the others take more."""
SAME_AGAIN = "Cannot transition status"
"""What GitLab says of a status that a commit has already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRequest:
    """What is posted below the root of a host's API, and the path that shows whether the repository is there."""

    path: str
    body: Mapping[str, Json]
    repository: str


def status_request(software: HostSoftware, project: str, notice: Notice, commit: CommitId) -> StatusRequest:
    """Write the request that sets the status of a commit."""
    failed = notice.importance is Importance.ERROR
    text = escape(notice.event.line, TextTarget.COMMIT_STATUS)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    context = f"overspill/{notice.event.workload or 'test'}"
    match software:
        case HostSoftware.GITHUB:
            state, root, path = ("failure" if failed else "success"), f"/repos/{project}", f"/statuses/{commit}"
        case HostSoftware.GITLAB:
            state, root = ("failed" if failed else "success"), f"/api/v4/projects/{quote(project, safe='')}"
            path = f"/statuses/{commit}"
        case HostSoftware.GITEA:
            state, root = ("failure" if failed else "success"), f"/api/v1/repos/{project}"
            path = f"/statuses/{commit}"
    return StatusRequest(
        path=root + path, body={"state": state, "context": context, "description": text}, repository=root
    )
