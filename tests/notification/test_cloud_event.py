"""CloudEvents have one body for ever, and signatures as Standard Webhooks have them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from reconciler.core.notification.cloud_event import body_of, headers_of
from reconciler.core.notification.notices import live_notice, notices_of
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import Importance
from reconciler.model.ids import CommitId
from reconciler.model.plan import Reason
from reconciler.model.tree import Identity, LoggedCommit
from tests.builders.notifications import OURS, VLLM

AT = datetime(2021, 1, 1, tzinfo=UTC)


def logged(subject: str, body: str = "", *, by: Identity = OURS, **trailers: str) -> LoggedCommit:
    named = {f"Overspill-{key.replace('_', '-')}": value for key, value in trailers.items()}
    return LoggedCommit(
        id=CommitId("a" * 40), at=AT, author=by, committer=by, subject=subject, body=body, trailers=named
    )


def test_signature_is_that_of_the_specification() -> None:
    # The example of the specification of Standard Webhooks 1.0.0, whose secret and signature are public.
    notice = Notice(
        id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        event=Event(kind=EventKind.PLACED, at=AT, line=""),
        importance=Importance.INFO,
    )
    secret = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = headers_of(notice, b'{"test": 2432232314}', secret, datetime.fromtimestamp(1614265330, UTC))
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert headers["webhook-timestamp"] == "1614265330"


def test_secret_that_is_no_base64_is_refused() -> None:
    (notice,) = notices_of((logged("burst(llm/vllm): 1 replica on b", Action="Place"),), OURS)
    with pytest.raises(ValueError, match="not base64"):
        headers_of(notice, b"", "whsec_???", AT)


def test_event_of_a_commit_has_what_its_trailers_say() -> None:
    commit = logged(
        "move(llm/vllm): 3 replicas from worker-2 to worker-3",
        "The cluster is lost.\n\nOverspill-Action: Move",
        Action="Move",
        Moved_From="worker-2",
        Cluster="worker-3",
        Why="cluster-lost",
        Placement="llm/vllm-7f3a",
        Source="5" * 40,
    )
    (notice,) = notices_of((commit,), OURS)
    assert notice.importance is Importance.WARNING
    assert json.loads(body_of(notice, "demo fleet")) == {
        "specversion": "1.0",
        "id": "a" * 40,
        "source": "/overspill/demo%20fleet",
        "type": "dev.overspill.moved",
        "time": "2021-01-01T00:00:00Z",
        "subject": "llm/vllm",
        "datacontenttype": "application/json",
        "data": {
            "severity": "Warning",
            "line": "move(llm/vllm): 3 replicas from worker-2 to worker-3",
            "reasons": ["The cluster is lost."],
            "workspace": "llm",
            "workload": "vllm",
            "clusters": ["worker-2", "worker-3"],
            "placement": "llm/vllm-7f3a",
            "commit": "a" * 40,
            "sourceCommit": "5" * 40,
        },
    }


def test_a_resize_by_policy_is_no_warning_and_an_end_by_policy_is() -> None:
    resize = logged("resize(llm/vllm): 5 to 3 replicas on worker-2", Action="Resize", Why="policy")
    end = logged('Revert "burst(llm/vllm): 3 replicas on worker-2 for 10m"', Action="Revert", Why="policy")
    assert [notice.importance for notice in notices_of((resize, end), OURS)] == [Importance.INFO, Importance.WARNING]


def test_commits_of_others_and_housekeeping_are_told_to_nobody() -> None:
    stranger = Identity(name="Ann", email="ann@example.com")
    assert notices_of((logged("burst(llm/vllm): x", by=stranger, Action="Place"),), OURS) == ()
    assert notices_of((logged("Begin the branch", Action="Start"),), OURS) == ()
    assert notices_of((logged("Tidy up"),), OURS) == ()


def test_no_secret_of_a_commit_is_told() -> None:
    password = "hunter2" + "hunter2"
    commit = logged(
        f"burst(llm/vllm): 1 replica on https://ann:{password}@example.com",
        f"The pod says: --password {password} is wrong.\nGET https://ann:{password}@example.com failed.",
        Action="Place",
    )
    (notice,) = notices_of((commit,), OURS)
    assert password.encode() not in body_of(notice, "demo")


def test_change_that_is_held_back_has_an_id_of_its_own() -> None:
    def held(at: datetime) -> Event:
        return Event(
            kind=EventKind.HELD_BACK, at=at, line="llm/vllm: nothing fits", workload=VLLM, held_by=Reason.NOTHING_FITS
        )

    first, again = live_notice(held(AT)), live_notice(held(AT))
    later = live_notice(held(datetime(2021, 1, 2, tzinfo=UTC)))
    assert first.id == again.id != later.id
    assert first.importance is Importance.WARNING
    assert json.loads(body_of(first, "demo"))["data"]["heldBy"] == "NothingFits"
