"""Sets commit statuses at the host of the fleet repository, on the source commits that were decided on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from reconciler.adapters.git.remote import Credentials, check_address
from reconciler.adapters.git_host import HostAddress, find_host
from reconciler.adapters.notification.sender import NotTaken, SingleTarget
from reconciler.core.notification.commit_status import SAME_AGAIN, StatusRequest, status_request
from reconciler.core.notification.message import Uncertain
from reconciler.errors import InvalidInput
from reconciler.http_client import HttpAnswer, HttpClient, NoAnswer
from reconciler.model.events.event import Notice
from reconciler.model.ids import CommitId

_LIMIT = 64 << 10
"""Bytes that are read of an answer."""
_REFUSED, _UNKNOWN, _LOGINS = 400, (404, 422), (401, 403)


class CommitStatusSender(SingleTarget):
    """Sets statuses with a token, or with the login of git; `timeout` is in seconds, for each answer.

    `remark` is told of commits that can have no status.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        token: Callable[[], str] | None,
        *,
        remark: Callable[[str], None],
        timeout: float,
    ) -> None:
        check_address(url, credentials)
        self._url, self._credentials = url, credentials
        self._token = token
        self._remark = remark
        self._timeout = timeout
        self._host: HostAddress | None = None

    def ready(self) -> None:
        """Read the token. Raises NotTaken."""
        if self._token is not None:
            self._token()

    def send(self, _target: str, notices: Sequence[Notice], _uncertain: Uncertain | None = None) -> None:
        """Set the statuses of notices. Raises NotTaken."""
        try:
            with HttpClient(timeout=self._timeout) as http:
                for notice in notices:
                    if notice.source is not None:
                        self._send(http, notice)
        except NoAnswer as error:
            raise NotTaken(str(error)) from error
        except InvalidInput as error:  # a proxy that cannot be used
            raise NotTaken(str(error)) from error

    def _send(self, http: HttpClient, notice: Notice) -> None:
        self._host = self._host or find_host(http, self._url, self._credentials)
        if self._host is None:
            raise NotTaken("the host of the fleet repository is none of GitHub, GitLab, Gitea and Forgejo over https")
        if notice.source is None:
            return
        headers = self._headers(self._host)
        request = status_request(self._host.software, self._host.project, notice, notice.source)
        answer = http.send(
            "POST",
            f"{self._host.api}{request.path}",
            headers={**headers, "Content-Type": "application/json", "Accept": "application/json"},
            body=json.dumps(dict(request.body)).encode(),
            limit=_LIMIT,
        )
        if answer.status // 100 == 2:  # noqa: PLR2004 - good answers begin with it
            return
        self._judge(http, self._host, request, answer, notice.source)

    def _judge(
        self,
        http: HttpClient,
        host: HostAddress,
        request: StatusRequest,
        answer: HttpAnswer,
        commit: CommitId,
    ) -> None:
        """Tell apart what stands already, what will never be taken, and what is tried again."""
        # 1. GitLab has this very status.
        if answer.status == _REFUSED and SAME_AGAIN.encode() in answer.body:
            return
        # 2. It limits the rate of calls.
        if answer.asks_for_quiet:
            raise NotTaken(f"{host.software} answers {answer.status}: a rate limit")
        # 3. The host does not know the commit, as after a rewritten source branch.
        if answer.status in _UNKNOWN:
            seen = http.send("GET", f"{host.api}{request.repository}", headers=self._headers(host), limit=0)
            if seen.status // 100 == 2:  # noqa: PLR2004 - good answers begin with it
                self._remark(f"{host.software} takes no status of commit {commit[:12]}: does it have it?")
                return
        # 4. The login may not.
        if answer.status in (*_UNKNOWN, *_LOGINS):
            raise NotTaken(
                f"{host.software} answers {answer.status} (may its token write commit statuses? Name one by tokenFrom)"
            )
        raise NotTaken(f"{host.software} answers {answer.status}")

    def _headers(self, host: HostAddress) -> Mapping[str, str]:
        if self._token is None:
            return host.headers()
        return {"Authorization": f"Bearer {self._token()}"}
