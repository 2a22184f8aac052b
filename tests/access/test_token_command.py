"""`overspill token`: what it makes lets its bearer in, once the entry stands in the file."""

from __future__ import annotations

import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconciler.access.rights import TOKEN, caller_of_token, digest
from reconciler.adapters.access.access_file import AccessFileWatcher
from reconciler.cli import main
from reconciler.errors import InvalidInput
from reconciler.text.redaction import credential
from tests.builders.api_server import open_api


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["token", *arguments], prog_name="overspill")


def shown(result: Result) -> str:
    (token,) = TOKEN.findall(result.stderr)
    return str(token)


def test_entry_lets_the_bearer_in_and_is_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "access.yaml"
    file.write_text("tokens:\n")
    one = run("--name", "ci", "--workspace", "llm", "--workspace", "vision", "--role", "Editor")
    two = run("--name", "ada", "--email", "ada@example.com", "--workspace", "*", "--role", "owner")
    assert one.exit_code == two.exit_code == 0
    file.write_text(file.read_text() + one.stdout + two.stdout)
    assert not TOKEN.search(file.read_text())
    with open_api(access=AccessFileWatcher(file)) as secured:
        assert secured.call(token=shown(one)).body["data"]["roles"] == {"llm": "Editor", "vision": "Editor"}
        assert secured.call(token=shown(two)).body["data"] == {
            "name": "ada",
            "email": "ada@example.com",
            "roles": {"*": "Owner"},
        }


def test_each_token_is_another_one_and_is_known_for_a_secret() -> None:
    made = [shown(run("--name", "ci", "--workspace", "llm", "--role", "Viewer")) for _ in range(3)]
    assert len({*made}) == 3
    assert [credential(token) for token in made] == ["an Overspill token"] * 3


def test_token_may_expire(tmp_path: Path) -> None:
    result = run("--name", "ci", "--workspace", "llm", "--role", "Viewer", "--expires", "90d")
    (until,) = re.findall(r'expires: "(.*)"', result.stdout)
    assert abs(datetime.fromisoformat(until) - datetime.now(UTC) - timedelta(days=90)) < timedelta(minutes=1)
    assert f"It expires at {until}." in result.stderr
    file = tmp_path / "access.yaml"
    file.write_text("tokens:\n" + result.stdout)
    assert caller_of_token(AccessFileWatcher(file)(), shown(result), datetime.now(UTC)).name == "ci"


def test_token_can_go_to_a_new_file_that_nobody_else_may_read(tmp_path: Path) -> None:
    file = tmp_path / "ci.token"
    arguments = ("--name", "ci", "--workspace", "llm", "--role", "Viewer", "--out", str(file))
    result = run(*arguments)
    assert digest(file.read_text().strip()) in result.stdout
    assert TOKEN.fullmatch(file.read_text().strip())
    assert not TOKEN.search(result.stderr)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = run(*arguments)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "File exists (try another --out)" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--name", "a\nb", "--workspace", "llm", "--role", "Viewer"), "--name: 'a\\nb' is not a name"),
        (
            ("--name", "ci", "--workspace", "LLM", "--role", "Viewer"),
            "--workspace: 'LLM' is not the name of a workspace",
        ),
        (("--name", "ci", "--workspace", "llm", "--role", "Boss"), "'Boss' is not one of"),
        (("--name", "ci", "--role", "Viewer"), "Missing option '--workspace'"),
        (("--name", "ci", "--email", "x", "--workspace", "llm", "--role", "Viewer"), "--email: 'x' is not a mail"),
        (("--name", "ci", "--workspace", "llm", "--role", "Viewer", "--expires", "soon"), "'soon' is not a duration"),
    ],
)
def test_wrong_option_makes_no_token(arguments: tuple[str, ...], told: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, told in result.stderr) == (2, "", True), result.stderr


def test_token_is_refused_in_place_of_its_digest(tmp_path: Path) -> None:
    token = shown(run("--name", "ci", "--workspace", "llm", "--role", "Viewer"))
    file = tmp_path / "access.yaml"
    file.write_text(f"tokens:\n- name: ci\n  sha256: {token}\n  roles: {{llm: Viewer}}\n")
    with pytest.raises(InvalidInput, match="is the token itself") as caught:
        AccessFileWatcher(file)
    assert token not in str(caught.value)
