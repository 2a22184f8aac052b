"""The file that says who may what: what it may say, and what is wrong with it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.access.rights import Access, AccessRole, IssuerRule, Token, digest
from reconciler.adapters.access.access_file import AccessFileWatcher
from reconciler.core.schema.access import read_access, token_entry
from reconciler.errors import InvalidInput
from tests.builders.api_server import ADA, CI, LLM, NOON, VISION

GOOD = f"""\
tokens:
- name: ci
  email: ci@example.com
  sha256: {digest(CI)}
  expires: "2027-02-18T00:00:00Z"
  roles: {{llm: Editor, vision: Viewer}}
- name: ada
  sha256: {digest(ADA)}
  roles: {{"*": Owner}}
oidc:
  roles:
  - group: ml-team
    workspaces: {{llm: Editor}}
  - subject: u-7
    workspaces: {{"*": Viewer}}
  - email: grace@example.com
    workspaces: {{vision: Owner}}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read_access(text.encode(), "access.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_everything_that_it_can_say() -> None:
    assert read_access(GOOD.encode(), "access.yaml") == Access(
        tokens=(
            Token(
                name="ci",
                email="ci@example.com",
                digest=digest(CI),
                expires=datetime(2027, 2, 18, tzinfo=UTC),
                roles={LLM: AccessRole.EDITOR, VISION: AccessRole.VIEWER},
            ),
            Token(name="ada", digest=digest(ADA), roles={"*": AccessRole.OWNER}),
        ),
        rules=(
            IssuerRule(claim="group", value="ml-team", roles={LLM: AccessRole.EDITOR}),
            IssuerRule(claim="subject", value="u-7", roles={"*": AccessRole.VIEWER}),
            IssuerRule(claim="email", value="grace@example.com", roles={VISION: AccessRole.OWNER}),
        ),
    )


def test_nothing_lets_nobody_in_but_has_to_be_said() -> None:
    assert read_access(b"{}", "access.yaml") == Access()
    assert problems("# nobody\n") == ["access.yaml: is empty (try {}, which lets nobody in)"]


def test_entries_without_their_key_are_told_where_it_goes() -> None:
    entry = token_entry(Token(name="ci", digest=digest(CI), roles={LLM: AccessRole.EDITOR}))
    assert problems(entry) == [
        "access.yaml:1: must be a mapping, not a list (try beginning the file with `tokens:`, above the list)"
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("roles: {llm", "role: {llm", "access.yaml:6: tokens[0].role: unknown field (try 'roles')"),
        ("vision: Viewer", "vision: viewer", "6: tokens[0].roles.vision: 'viewer' is not one of Viewer, Editor, Owner"),
        ("{llm: Editor, v", "{LLM: Editor, v", "6: tokens[0].roles.LLM: 'LLM' is not the name of a workspace (try one"),
        ("{llm: Editor, vision: Viewer}", "{}", "6: tokens[0].roles: is empty"),
        ("  email: ci@example.com", "  email: ci", "3: tokens[0].email: 'ci' is not a mail address"),
        ("name: ci", "name: c<i", "2: tokens[0].name: is not a name of at most 100 printable characters"),
        ('"2027-02-18T00:00:00Z"', "90d", "5: tokens[0].expires: '90d' is not a time of RFC 3339"),
        ("group: ml-team", "team: ml-team", "12: oidc.roles[0].team: unknown field"),
        ("- group: ml-team\n   ", "-", "12: oidc.roles[0]: must have exactly one of group, subject and email"),
        ('"*": Owner', "*: Owner", "access.yaml:9: is not YAML"),
        ("  - subject: u-7", "  - subject: u-7\n    group: ops", "14: oidc.roles[1]: must have exactly one of group"),
        ("name: ada", "name: ci", "7: tokens[1].name: is another token's name as well (try 'ci-2')"),
        (digest(ADA), digest(CI), "8: tokens[1].sha256: is another entry's token as well"),
        ("oidc:", "---\noidc:", "access.yaml: holds several documents"),
        (digest(CI), digest(CI).upper(), "4: tokens[0].sha256: is not a SHA-256 of 64 digits from 0 to f"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, told: str) -> None:
    assert old in GOOD
    assert any(told in problem for problem in problems(GOOD.replace(old, new))), problems(GOOD.replace(old, new))


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert len(problems("tokens:\n- name: ci\n- sha256: abc\n  roles: {llm: Boss}\n")) == 5


def test_token_in_place_of_its_digest_is_not_repeated() -> None:
    (told,) = problems(GOOD.replace(digest(CI), CI))
    assert "is the token itself" in told
    assert CI not in told
    assert CI[10:] not in told


def test_entry_that_is_written_is_read_as_the_same_token() -> None:
    token = Token(
        name="yes", email="a@b", digest=digest(CI), expires=NOON, roles={"*": AccessRole.VIEWER, LLM: AccessRole.OWNER}
    )
    assert read_access(f"tokens:\n{token_entry(token)}".encode(), "access.yaml").tokens == (token,)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "access.yaml"
    path.write_text(GOOD)
    return path


def replaced(path: Path, text: str) -> None:
    """Put another version in place, as a careful writer does."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)


def test_changed_file_is_read_again(path: Path) -> None:
    access = AccessFileWatcher(path)
    assert len(access().tokens) == 2
    replaced(path, "{}\n")
    assert access() == Access()


def test_broken_file_leaves_the_last_good_version_and_says_so_once(path: Path) -> None:
    access = AccessFileWatcher(path)
    replaced(path, "tokens: [{name: ci}]\n")
    with capture_logs() as logs:
        assert len(access().tokens) == 2
        assert len(access().tokens) == 2
    assert [entry["log_level"] for entry in logs] == ["warning", "warning"]  # one for each field that is missing
    assert all("stays in force" in entry["line"] for entry in logs)
    replaced(path, "{}\n")
    assert access() == Access()


def test_file_that_has_gone_leaves_the_last_good_version(path: Path) -> None:
    access = AccessFileWatcher(path)
    path.unlink()
    with capture_logs() as logs:
        assert len(access().tokens) == 2
    assert "cannot be read: No such file" in logs[0]["line"]


def test_broken_file_stops_the_start(path: Path) -> None:
    path.write_text("tokens: none\n")
    with pytest.raises(InvalidInput, match=r"access.yaml:1: tokens: must be a list, not the text 'none'"):
        AccessFileWatcher(path)
    begin = r"No such file or directory \(begin one: \(echo tokens:; overspill token --name ada .*\) > .*/nowhere\)"
    with pytest.raises(InvalidInput, match=begin):
        AccessFileWatcher(path.with_name("nowhere"))
