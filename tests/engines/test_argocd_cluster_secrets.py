"""Argo CD's cluster Secrets are read as Argo CD reads them, and nothing of them is told."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from reconciler.core.engines.argocd.cluster_secrets import ClusterSecrets
from reconciler.core.engines.logins import ClusterLogin, Plugin, Unusable
from reconciler.core.workloads.watch import ChangeEffect

TOKEN = "sesame-" * 3
SERVER = "https://10.0.0.7:6443"
PEM = b"-----BEGIN CERTIFICATE-----\n"
"""As much as a reader sees of one: only OpenSSL looks further."""


def encoded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def secret(
    config: dict[str, Any] | str, *, name: str = "worker-2", server: str = SERVER, called: str = "cluster-a"
) -> dict[str, Any]:
    text = config if isinstance(config, str) else json.dumps(config)
    data = {"name": encoded(name), "server": encoded(server), "config": encoded(text)}
    return {"metadata": {"namespace": "argocd", "name": called}, "data": data}


def known(*raws: dict[str, Any]) -> ClusterSecrets:
    made = ClusterSecrets()
    for raw in raws:
        made.apply(raw)
    return made


def login(config: dict[str, Any] | str, **more: str) -> ClusterLogin | Unusable:
    return known(secret(config, **more)).login("worker-2")


def why(config: dict[str, Any] | str, **more: str) -> str:
    found = login(config, **more)
    assert isinstance(found, Unusable)
    return found.why


def test_token_and_authority_are_read() -> None:
    found = login({"bearerToken": TOKEN, "tlsClientConfig": {"caData": encoded(PEM), "serverName": "kube.example"}})
    assert found == ClusterLogin(server=SERVER, token=TOKEN, authority=PEM, server_name="kube.example")


def test_password_and_client_certificate_are_read() -> None:
    tls = {"insecure": True, "certData": encoded(PEM), "keyData": encoded(b"k")}
    found = login({"username": "ada", "password": TOKEN, "proxyUrl": "http://proxy:3128", "tlsClientConfig": tls})
    assert found == ClusterLogin(
        server=SERVER,
        username="ada",
        password=TOKEN,
        certificate=PEM,
        key=b"k",
        insecure=True,
        proxy="http://proxy:3128",
    )


def test_slash_at_the_end_of_the_server_is_left_out() -> None:
    assert login({"bearerToken": TOKEN}, server=f"{SERVER}/") == ClusterLogin(server=SERVER, token=TOKEN)


def test_program_of_a_secret_is_read_but_not_told() -> None:
    asks = {"command": "gcloud-auth", "args": ["--for", "me"], "env": {"PROFILE": TOKEN}, "apiVersion": "v1"}
    found = login({"execProviderConfig": asks})
    plugin = Plugin(command="gcloud-auth", args=("--for", "me"), env=(("PROFILE", TOKEN),), version="v1")
    assert found == ClusterLogin(server=SERVER, plugin=plugin)
    assert TOKEN not in repr(found)


def test_login_to_aws_is_by_the_program_that_argo_cd_runs() -> None:
    found = login({"awsAuthConfig": {"clusterName": "eu-1", "roleARN": "arn:aws:iam::1:role/a"}})
    assert isinstance(found, ClusterLogin)
    assert found.plugin is not None
    assert (found.plugin.command, *found.plugin.args) == (
        "argocd-k8s-auth", "aws", "--cluster-name", "eu-1", "--role-arn", "arn:aws:iam::1:role/a",
    )  # fmt: skip # a list of words, filled line by line


def test_cluster_of_argo_cd_itself_needs_no_secret() -> None:
    found = known().login("in-cluster")
    assert isinstance(found, ClusterLogin)
    assert found.local


def test_secret_for_the_cluster_of_argo_cd_itself_is_local_under_any_name() -> None:
    found = login({"bearerToken": TOKEN}, server="https://kubernetes.default.svc/")
    assert isinstance(found, ClusterLogin)
    assert (found.local, found.token) == (True, TOKEN)


def test_cluster_that_argo_cd_does_not_know_is_told() -> None:
    assert known(secret({})).login("worker-3") == Unusable(why="Argo CD has no cluster Secret whose name is 'worker-3'")


def test_two_secrets_of_one_name_are_told_by_their_own_names() -> None:
    one, two = secret({"bearerToken": TOKEN}), secret({"bearerToken": TOKEN}, called="cluster-b")
    assert known(one, two).login("worker-2") == Unusable(
        why="Argo CD has several cluster Secrets for 'worker-2': cluster-a, cluster-b"
    )


def test_secret_that_changes_or_goes_is_as_it_is_now() -> None:
    made = known(secret({"bearerToken": "old"}))
    assert made.apply(secret({"bearerToken": TOKEN})) is ChangeEffect.CAPACITY
    assert made.apply(secret({"bearerToken": TOKEN})) is ChangeEffect.NOTHING
    assert made.login("worker-2") == ClusterLogin(server=SERVER, token=TOKEN)
    assert made.remove("argocd/cluster-a") is ChangeEffect.CAPACITY
    assert made.remove("argocd/cluster-a") is ChangeEffect.NOTHING
    assert isinstance(made.login("worker-2"), Unusable)
    assert made.keys() == set()


@pytest.mark.parametrize(
    ("config", "what"),
    [
        (f"{{{TOKEN}", "config is not JSON"),
        (f'["{TOKEN}"]', "config is not an object"),
        ({"bearerToken": [TOKEN]}, "config has a bearerToken that is no text"),
        ({"bearerToken": f"{TOKEN}\n{TOKEN}"}, "config.bearerToken holds control characters"),
        ({"bearerToken": TOKEN, "username": TOKEN}, "config has both bearerToken and username"),
        ({"tlsClientConfig": TOKEN}, "config.tlsClientConfig is not an object"),
        ({"tlsClientConfig": {"caData": f"{TOKEN}!"}}, "config.tlsClientConfig.caData is not base64"),
        (
            {"tlsClientConfig": {"keyData": encoded(TOKEN)}},
            "config.tlsClientConfig needs both certData and keyData, or neither",
        ),
        (
            {"tlsClientConfig": {"insecure": True, "caData": encoded(TOKEN)}},
            "config.tlsClientConfig has both insecure and caData",
        ),
        ({"proxyUrl": f"socks5://ada:{TOKEN}@proxy"}, "config.proxyUrl is no http:// address"),
        ({"execProviderConfig": {"args": [TOKEN]}}, "config.execProviderConfig has no command"),
        (
            {"execProviderConfig": {"command": "a", "env": {"A": [TOKEN]}}},
            "config.execProviderConfig has args or env that are no text",
        ),
    ],
)
def test_what_is_wrong_is_told_without_a_word_of_the_secret(config: dict[str, Any] | str, what: str) -> None:
    assert why(config) == f"Argo CD's Secret cluster-a cannot be used: {what}"


@pytest.mark.parametrize("server", ["", "10.0.0.7:6443", "file:///etc/passwd", "https://", "https://[", "https://a\nb"])
def test_server_that_is_no_address_is_refused(server: str) -> None:
    assert why({}, server=server) == "Argo CD's Secret cluster-a cannot be used: server is no https:// address"


def test_nothing_that_is_secret_is_in_a_repr() -> None:
    tls = {"certData": encoded(TOKEN), "keyData": encoded(TOKEN)}
    for config in ({"bearerToken": TOKEN}, {"username": TOKEN, "password": TOKEN, "tlsClientConfig": tls}):
        assert TOKEN not in repr(login(config))
