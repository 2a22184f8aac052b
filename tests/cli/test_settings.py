"""What the environment may say."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.access.oidc import Issuer
from reconciler.access.rate_limit import Rate
from reconciler.environment import VARIABLES
from reconciler.errors import InvalidInput
from reconciler.settings import from_environment
from reconciler.variables import Listen

TOKEN = "t0ken-" * 4


def test_nothing_set_gives_defaults() -> None:
    settings = from_environment({"HOME": "/home/ada"})
    assert (settings.source_branch, settings.output_branch) == ("main", "placements")
    assert settings.poll_interval == timedelta(seconds=30)
    assert settings.cache_dir == Path("/home/ada/.cache/overspill")
    assert settings.listen is None
    assert settings.push_token == settings.webhook_secret == ""
    assert settings.warnings == ()


def test_without_a_home_the_cache_is_a_place_that_nobody_can_guess() -> None:
    one, other = from_environment({}).cache_dir, from_environment({"HOME": ""}).cache_dir
    assert one != other
    assert [path.stat().st_mode & 0o777 for path in (one, other)] == [0o700, 0o700]


def test_everything_can_be_set(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(TOKEN + "\n")
    settings = from_environment(
        {
            "OVERSPILL_REPO": "https://git.example.com/fleet.git",
            "OVERSPILL_SOURCE_BRANCH": "trunk",
            "OVERSPILL_OUTPUT_BRANCH": "env/placements",
            "OVERSPILL_OBSERVATIONS": "/var/observations",
            "OVERSPILL_CACHE_DIR": "/var/cache/overspill",
            "OVERSPILL_POLL_INTERVAL": "2m",
            "OVERSPILL_LISTEN": "[::1]:8080",
            "OVERSPILL_PUSH_TOKEN": TOKEN,
            "OVERSPILL_WEBHOOK_SECRET": TOKEN,
            "OVERSPILL_GIT_USERNAME": "bot",
            "OVERSPILL_GIT_PASSWORD_FILE": str(password),
            "OVERSPILL_SSH_KEY": "/keys/id",
            "OVERSPILL_KNOWN_HOSTS": "/keys/hosts",
            "OVERSPILL_COMMITTER_NAME": "Bursts",
            "OVERSPILL_COMMITTER_EMAIL": "bursts@example.com",
            "OVERSPILL_LOG_FORMAT": "json",
            "OVERSPILL_LOGIN_PLUGINS": "aws, gke-gcloud-auth-plugin",
            "NO_COLOR": "1",
        }
    )
    assert settings.listen == Listen(host="::1", port=8080)
    assert settings.git_password == TOKEN
    assert settings.poll_interval == timedelta(minutes=2)
    assert (settings.log_format, settings.colour) == ("json", False)
    assert settings.login_plugins == {"aws", "gke-gcloud-auth-plugin"}


@pytest.mark.parametrize(
    ("value", "strict"), [("", False), ("false", False), ("0", False), ("True", True), ("1", True)]
)
def test_egs_strictness_is_asked_for_in_a_word(value: str, *, strict: bool) -> None:
    assert from_environment({"OVERSPILL_STRICT_EGS_API": value}).strict_egs_api is strict


def test_lines_of_commit_messages_are_trailers_of_the_organisation() -> None:
    lines = "Signed-off-by: Bot <bot@example.com>\nChange-Type: routine\n"
    assert from_environment({"OVERSPILL_COMMIT_TRAILERS": lines}).commit_trailers == tuple(lines.splitlines())
    wrong = ("Overspill-Confirm: deletion", "overspill-action: Place", "no trailer", f"X: {'y' * 300}", "X: \x1b[1m")
    for line in (*wrong, "\n".join(["X: y"] * 11)):
        with pytest.raises(InvalidInput, match="OVERSPILL_COMMIT_TRAILERS"):
            from_environment({"OVERSPILL_COMMIT_TRAILERS": line})


def test_secrets_do_not_show_in_a_repr() -> None:
    settings = from_environment(
        {
            "OVERSPILL_REPO": f"https://bot:{TOKEN}@git.example.com/fleet.git",
            "OVERSPILL_PUSH_TOKEN": TOKEN,
            "OVERSPILL_WEBHOOK_SECRET": TOKEN,
            "OVERSPILL_GIT_PASSWORD": TOKEN,
        }
    )
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("POLL_INTERVAL", "30 sec", "'30 sec' is not a duration (try '30s')"),
        ("POLL_INTERVAL", "0.1s", "'0.1s' is shorter than a second (try 30s)"),
        ("STRICT_EGS_API", "maybe", "'maybe' is neither true nor false (try true, or leaving it out)"),
        ("LISTEN", "8080", "'8080' is not host:port (try 127.0.0.1:8080, or :8080 for every interface)"),
        ("LISTEN", "localhost:99999", "'localhost:99999' is not host:port"),
        ("SOURCE_BRANCH", "--upload-pack=x", "'--upload-pack=x' is not the name of a branch (try main)"),
        ("OUTPUT_BRANCH", "a..b", "'a..b' is not the name of a branch (try placements)"),
        ("OUTPUT_BRANCH", "main", "is the source branch as well (try placements)"),
        ("LOGIN_PLUGINS", "aws,,b", "'' is not the name of a program (try aws,gke-gcloud-auth-plugin)"),
        ("LOGIN_PLUGINS", "aws eks", "'aws eks' is not the name of a program"),
        ("LOG_FORMAT", "xml", "'xml' is no log format (try text or json)"),
        ("COMMITTER_EMAIL", "me", "'me' is not a mail address"),
        ("COMMITTER_FORMER_EMAILS", "a@example.com me", "'me' is not a mail address"),
        ("COMMITTER_NAME", "a\nb", "holds control characters"),
        ("PUSH_TOKEN", "short", "is shorter than 16 characters (try the output of `openssl rand -hex 32`)"),
        ("PUSH_TOKEN_FILE", "/nonexistent/token", "/nonexistent/token cannot be read: No such file"),
    ],
)
def test_bad_value_is_named_with_a_good_one(name: str, value: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_environment({f"OVERSPILL_{name}": value})
    assert f"OVERSPILL_{name}: {says}" in str(caught.value)


def test_all_bad_values_are_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        from_environment({"OVERSPILL_LISTEN": "x", "OVERSPILL_LOG_FORMAT": "x", "OVERSPILL_POLL_INTERVAL": "x"})
    assert len(caught.value.problems) == 3


def test_secret_and_its_file_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="and so is OVERSPILL_PUSH_TOKEN"):
        from_environment({"OVERSPILL_PUSH_TOKEN": TOKEN, "OVERSPILL_PUSH_TOKEN_FILE": str(tmp_path / "token")})


def test_empty_secret_file_is_refused_and_not_taken_as_no_secret(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(InvalidInput, match="is empty"):
        from_environment({"OVERSPILL_PUSH_TOKEN_FILE": str(tmp_path / "token")})


def test_unknown_variable_is_a_warning_with_the_nearest_name() -> None:
    settings = from_environment({"OVERSPILL_POLL_INTERVALL": "30s", "HOME": "/"})
    assert [str(problem) for problem in settings.warnings] == [
        "OVERSPILL_POLL_INTERVALL: is no setting of Overspill (did you mean OVERSPILL_POLL_INTERVAL?)"
    ]


def test_what_kubernetes_adds_for_a_service_is_no_unknown_variable() -> None:
    links = ("PORT", "PORT_8080_TCP", "PORT_8080_TCP_ADDR", "SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP")
    assert from_environment({f"OVERSPILL_{link}": "tcp://10.0.0.1:8080" for link in links}).warnings == ()


def test_every_variable_is_on_the_page_of_settings_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "settings.md").read_text()
    rows = [line.split("|")[1].strip().strip("`") for line in page.splitlines() if line.startswith("| `OVERSPILL_")]
    assert rows == [f"OVERSPILL_{name}" for name in VARIABLES]


def test_the_door_can_be_set() -> None:
    settings = from_environment(
        {
            "OVERSPILL_TLS_CERT_FILE": "/tls/tls.crt",
            "OVERSPILL_TLS_KEY_FILE": "/tls/tls.key",
            "OVERSPILL_API_TOKENS_FILE": "/secrets/access.yaml",
            "OVERSPILL_API_RATE": "600/m",
            "OVERSPILL_OIDC_ISSUER": "https://login.example.com/realms/ml",
            "OVERSPILL_OIDC_AUDIENCE": "overspill",
            "OVERSPILL_OIDC_NAME_CLAIM": "preferred_username",
            "OVERSPILL_OIDC_CA_FILE": "/tls/ca.crt",
        }
    )
    assert settings.certificate == (Path("/tls/tls.crt"), Path("/tls/tls.key"))
    assert settings.api_tokens_file == Path("/secrets/access.yaml")
    assert settings.api_rate == Rate(per_second=10, burst=600)
    assert settings.issuer == Issuer(
        url="https://login.example.com/realms/ml", audience="overspill", name_claim="preferred_username"
    )
    assert settings.issuer_authorities == Path("/tls/ca.crt")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"TLS_CERT_FILE": "/a"}, "OVERSPILL_TLS_KEY_FILE: is not set, and OVERSPILL_TLS_CERT_FILE is"),
        ({"TLS_KEY_FILE": "/a"}, "OVERSPILL_TLS_CERT_FILE: is not set, and OVERSPILL_TLS_KEY_FILE is"),
        (
            {"API_TOKENS": "{}", "API_TOKENS_FILE": "/a"},
            "OVERSPILL_API_TOKENS_FILE: is set, and so is OVERSPILL_API_",
        ),
        ({"API_RATE": "fast"}, "OVERSPILL_API_RATE: 'fast' is not a number of calls a time (try 50/s or 600/m)"),
        ({"OIDC_ISSUER": "https://a"}, "OVERSPILL_OIDC_AUDIENCE: is not set, and OVERSPILL_OIDC_ISSUER is"),
        ({"OIDC_AUDIENCE": "a"}, "OVERSPILL_OIDC_ISSUER: is not set, and OVERSPILL_OIDC_AUDIENCE is"),
        ({"OIDC_ISSUER": "http://a", "OIDC_AUDIENCE": "a"}, "OVERSPILL_OIDC_ISSUER: is not an https address"),
        ({"OIDC_CLIENT_ID": "a"}, "OVERSPILL_OIDC_ISSUER: is not set, and OVERSPILL_OIDC_CLIENT_ID is"),
        (
            {"OIDC_ISSUER": "https://a", "OIDC_AUDIENCE": "a", "OIDC_CLIENT_SECRET": "b"},
            "OVERSPILL_OIDC_CLIENT_ID: is not set, and OVERSPILL_OIDC_CLIENT_SECRET is",
        ),
        ({"PAGE_SECRET": "short"}, "OVERSPILL_PAGE_SECRET: is shorter than 16 characters"),
        (
            {"PAGE_URL": "https://a:b@host"},
            "OVERSPILL_PAGE_URL: holds a user or a password (try the address without)",
        ),
    ],
)
def test_half_a_door_is_refused(variables: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_environment({f"OVERSPILL_{name}": value for name, value in variables.items()})
    assert [says in str(problem) for problem in caught.value.problems] == [True], caught.value


@pytest.mark.parametrize(
    "address", ["http://prometheus:9090", "https://mimir.example.com/prometheus", "http://[::1]:9090/"]
)
def test_prometheus_is_an_address(address: str) -> None:
    settings = from_environment({"OVERSPILL_PROMETHEUS": address, "OVERSPILL_PROMETHEUS_TOKEN": TOKEN})
    assert (settings.prometheus, settings.prometheus_token) == (address, TOKEN)
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    "address",
    [
        "prometheus:9090",
        "ftp://a",
        "http://",
        "http://a:port",
        "http://a:0",
        "http://[::1",
        "http://a/?b",
        "http://a b",
    ],
)
def test_what_is_no_address_of_a_server_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match=r"OVERSPILL_PROMETHEUS: .* is not the address of a server"):
        from_environment({"OVERSPILL_PROMETHEUS": address})


def test_a_password_in_the_address_of_prometheus_is_refused_and_not_told() -> None:
    with pytest.raises(InvalidInput, match="OVERSPILL_PROMETHEUS_TOKEN") as refusal:
        from_environment({"OVERSPILL_PROMETHEUS": "http://ada:hunter2@prometheus:9090"})
    assert "hunter2" not in str(refusal.value)


def test_a_token_that_could_end_a_header_is_refused_and_not_told() -> None:
    with pytest.raises(InvalidInput, match="PROMETHEUS_TOKEN: holds what cannot stand in a header") as refusal:
        from_environment({"OVERSPILL_PROMETHEUS_TOKEN": "abc\r\nX: y"})
    assert "abc" not in str(refusal.value)


def test_a_token_for_slurm_goes_over_https_or_stays_on_this_machine() -> None:
    token = {"OVERSPILL_SLURM_TOKEN_FILE": "/run/token"}
    for address in ("https://slurm.example.com:6820", "http://127.0.0.1:6820"):
        assert from_environment({"OVERSPILL_SLURM": address, **token}).slurm == address
    assert from_environment({"OVERSPILL_SLURM": "http://proxy:6820"}).slurm == "http://proxy:6820"
    with pytest.raises(InvalidInput, match=r"OVERSPILL_SLURM: would be sent a token .*try an https:// address"):
        from_environment({"OVERSPILL_SLURM": "http://slurm.example.com:6820", **token})
    with pytest.raises(InvalidInput, match="OVERSPILL_SLURM_USER: holds what cannot stand in a header"):
        from_environment({"OVERSPILL_SLURM_USER": "two words"})
