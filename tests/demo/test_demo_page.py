"""The page of the demo: Ann may sign in by its link, before and after the daemon was killed."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.access.rights import TOKEN, AccessRole, caller_of_token, has_role
from reconciler.core.schema.access import read_access
from reconciler.demo.page import DemoPage
from reconciler.model.ids import WorkspaceName
from reconciler.settings import from_environment

NOON = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


def test_link_has_the_only_token_that_the_daemon_takes() -> None:
    page = DemoPage()
    access = read_access(page.environment["OVERSPILL_API_TOKENS"].encode(), "access")
    token = page.address.partition("#token=")[2]
    assert TOKEN.fullmatch(token)
    ann = caller_of_token(access, token, NOON)
    assert ann.name == "Ann"
    assert has_role(ann, AccessRole.OWNER, WorkspaceName("llm"))
    assert token not in page.environment["OVERSPILL_API_TOKENS"]


def test_daemon_listens_where_the_link_leads_and_nowhere_else() -> None:
    page = DemoPage()
    settings = from_environment({**page.environment, "OVERSPILL_LISTEN": page.listen, "HOME": "/nowhere"})
    assert settings.listen is not None
    assert f"http://{settings.listen.host}:{settings.listen.port}/login" in page.address
    assert settings.listen.host == "127.0.0.1"


def test_sessions_outlive_a_daemon_that_is_killed() -> None:
    page = DemoPage()
    assert len(page.secret) >= 16
    assert page.environment["OVERSPILL_PAGE_SECRET"] == page.environment["OVERSPILL_PAGE_SECRET"] == page.secret
    assert page.token not in repr(page)
