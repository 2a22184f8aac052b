"""What a role allows, and where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.access.rights import (
    AccessRole,
    Caller,
    has_role,
    is_valid_email,
    is_valid_name,
    merge_roles,
    visible_workspaces,
)
from reconciler.model.ids import WorkspaceName
from tests.builders.api_server import LLM, VISION

AUDIO = WorkspaceName("audio")
SCOPES = st.sampled_from([LLM, VISION, AUDIO, "*"])
ROLES = st.dictionaries(SCOPES, st.sampled_from(AccessRole))


def caller(**roles: AccessRole) -> Caller:
    return Caller(name="ada", roles={WorkspaceName(name): role for name, role in roles.items()}, kind="token")


@pytest.mark.parametrize("has", AccessRole)
@pytest.mark.parametrize("needs", AccessRole)
def test_a_role_allows_what_lesser_roles_do_and_no_more(has: AccessRole, needs: AccessRole) -> None:
    assert has_role(caller(llm=has), needs, LLM) is (has >= needs)


def test_a_role_in_one_workspace_is_none_in_another() -> None:
    assert not has_role(caller(llm=AccessRole.OWNER), AccessRole.VIEWER, VISION)


def test_a_role_everywhere_holds_in_workspaces_that_nobody_named() -> None:
    everywhere = Caller(name="ada", roles={"*": AccessRole.EDITOR, LLM: AccessRole.VIEWER}, kind="token")
    assert has_role(everywhere, AccessRole.EDITOR, AUDIO)
    assert has_role(everywhere, AccessRole.EDITOR, LLM), "the lesser role takes nothing away"
    assert not has_role(everywhere, AccessRole.OWNER, AUDIO)


def test_workspaces_that_nobody_gave_a_role_in_are_not_seen() -> None:
    assert visible_workspaces(caller(vision=AccessRole.VIEWER, llm=AccessRole.OWNER), [AUDIO, LLM, VISION]) == (
        LLM,
        VISION,
    )
    assert visible_workspaces(caller(), [AUDIO, LLM, VISION]) == ()


@given(st.lists(ROLES), st.sampled_from(AccessRole), st.sampled_from([LLM, VISION, AUDIO]))
def test_roles_from_several_sources_allow_what_one_of_them_does(parts, needs, workspace) -> None:
    one_by_one = any(has_role(Caller(name="a", roles=part, kind="oidc"), needs, workspace) for part in parts)
    assert has_role(Caller(name="a", roles=merge_roles(parts), kind="oidc"), needs, workspace) is one_by_one


@pytest.mark.parametrize("name", ["", " ci", "a\nb", "a<b>", "x" * 101, "a\x1b[0m", "\u202eada"])
def test_name_that_would_not_fit_in_a_commit_is_none(name: str) -> None:
    assert not is_valid_name(name)
    assert not is_valid_email(name + "@example.com>")


def test_people_are_called_all_kinds_of_names() -> None:
    assert all(is_valid_name(name) for name in ("ci", "Ada Lovelace", "ada@example.com", "Łukasz", "u-1:7f/3"))
