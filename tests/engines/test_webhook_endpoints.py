"""How one says whom to tell, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import InvalidInput
from reconciler.model.policy import EngineName
from reconciler.settings import from_environment
from tests.fakes.engine_webhooks import SECRET

ARGOCD = "argocd=https://argocd.example.com/api/webhook"
SETS = "argocd=http://argocd-applicationset-controller.argocd.svc:7000/api/webhook"
DIGEST = "0f" * 32
FLUX = f"flux=https://flux.worker-2.example.com/hook/{DIGEST}"


def test_several_endpoints_share_a_secret_or_have_one_for_their_engine(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("flux-" + SECRET + "\n")
    settings = from_environment(
        {
            "HOME": "/",
            "OVERSPILL_NOTIFY": f"{ARGOCD} {SETS}\n{FLUX} {ARGOCD}",
            "OVERSPILL_NOTIFY_SECRET": SECRET,
            "OVERSPILL_NOTIFY_SECRET_FLUX_FILE": str(file),
        }
    )
    assert [(one.engine, one.url, one.secret) for one in settings.notify] == [
        (EngineName.ARGOCD, ARGOCD.partition("=")[2], SECRET),
        (EngineName.ARGOCD, SETS.partition("=")[2], SECRET),
        (EngineName.FLUX, FLUX.partition("=")[2], "flux-" + SECRET),
    ]


def test_neither_secrets_nor_the_path_of_flux_show() -> None:
    settings = from_environment({"OVERSPILL_NOTIFY": f"{FLUX} {ARGOCD}", "OVERSPILL_NOTIFY_SECRET": SECRET})
    assert [str(one) for one in settings.notify] == [
        "flux at https://flux.worker-2.example.com/hook/***",
        "argocd at https://argocd.example.com/api/webhook",
    ]
    assert SECRET not in repr(settings)
    assert DIGEST not in repr(settings)


@pytest.mark.parametrize(
    "host",
    [
        "localhost:8080",
        "127.0.0.1:8080",
        "[::1]:8080",
        "10.1.2.3:30080",
        "[fd00::1]",
        "webhook-receiver.flux-system.svc",
        "webhook-receiver.flux-system.svc.cluster.local.",
        "webhook-receiver.flux-system.svc.corp:80",
        "argocd-server",
    ],
)
def test_plain_http_is_for_this_machine_private_addresses_and_services(host: str) -> None:
    settings = from_environment(
        {"OVERSPILL_NOTIFY": f"flux=http://{host}/hook/{DIGEST}", "OVERSPILL_NOTIFY_SECRET": SECRET}
    )
    assert len(settings.notify) == 1


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (ARGOCD.partition("=")[2], "holds a word that is not ENGINE=URL (try argocd=https://argocd.example.com/api/"),
        ("https://argocd.example.com/api/webhook?a=b", "holds a word that is not ENGINE=URL"),
        ("slack=https://hooks.example.com/x", "'slack' is no engine that can be told of a push (try argocd or flux)"),
        ("manifests=https://hooks.example.com/x", "'manifests' is no engine that can be told of a push"),
        (
            "argocd=ftp://argocd.example.com/api/webhook",
            "the address for argocd must be an https URL (try argocd=https",
        ),
        ("argocd=/api/webhook", "the address for argocd must be an https URL"),
        ("argocd=https://argocd.example.com:x/api/webhook", "the address for argocd cannot be read: Port"),
        ("argocd=https://argocd.example.com", "the address for argocd has no path"),
        ("flux=https://flux.example.com/", "the address for flux has no path (try flux=https://flux.example.com/hook/"),
        ("argocd=https://ann:x@argocd.example.com/api/webhook", "may hold neither a login nor a #"),
        ("argocd=http://argocd.example.com/api/webhook", "is plain http to argocd.example.com (try https://, or for a"),
        ("flux=http://8.8.8.8/hook/x", "is plain http to 8.8.8.8"),
        ("flux=http://receiver.flux-system/hook/x", "is plain http to receiver.flux-system"),
    ],
)
def test_an_address_that_cannot_be_is_refused_with_one_that_can(value: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_environment({"OVERSPILL_NOTIFY": f"{value} {ARGOCD}", "OVERSPILL_NOTIFY_SECRET": SECRET})
    (problem,) = caught.value.problems
    assert problem.path == "OVERSPILL_NOTIFY"
    assert says in str(problem)


def test_what_is_refused_is_not_repeated_where_it_is_half_a_secret() -> None:
    with pytest.raises(InvalidInput) as caught:
        from_environment({"OVERSPILL_NOTIFY": FLUX.replace("https", "http"), "OVERSPILL_NOTIFY_SECRET": SECRET})
    assert DIGEST not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "OVERSPILL_NOTIFY_SECRET: is not set, and engines are told of pushes with a signature only (try the out"),
        ({"_FLUX": SECRET}, "OVERSPILL_NOTIFY_SECRET: is not set"),
        ({"": "short"}, "OVERSPILL_NOTIFY_SECRET: is shorter than 16 characters"),
        ({"_ARGOCD": "short"}, "OVERSPILL_NOTIFY_SECRET_ARGOCD: is shorter than 16 characters"),
        ({"_ARGOCD_FILE": "/nonexistent/secret"}, "OVERSPILL_NOTIFY_SECRET_ARGOCD_FILE: /nonexistent/secret cannot be"),
    ],
)
def test_without_a_secret_worth_the_name_nobody_is_told(given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_environment(
            {"OVERSPILL_NOTIFY": ARGOCD, **{f"OVERSPILL_NOTIFY_SECRET{name}": value for name, value in given.items()}}
        )
    (problem,) = caught.value.problems
    assert says in str(problem)
