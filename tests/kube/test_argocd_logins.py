"""A cluster is reached by the login that Argo CD has for it, as that is now, and nothing of it is told to anybody."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kube import KubeObservations, WatchTiming
from reconciler.model.policy import ArgoCD, Connection, Desired
from reconciler.model.policy import Fleet as ModelFleet
from tests.builders.engine_objects import cluster_secret
from tests.builders.inputs import cluster, desired
from tests.builders.kube_objects import node, pod
from tests.builders.watched_clusters import LASTING, PATIENCE, QUICK, TWO_NAME, Fleet, free, seen, until
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

OLD, NEW = "old-sesame-" * 2, "new-sesame-" * 2
SECRETS = "/api/v1/namespaces/argocd/secrets"


class Logins(Fleet):
    """A cluster of the kubeconfig, one of Argo CD's with a token of its own, and Argo CD in a third."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.control = Cluster()
        stack.enter_context(serving(self.control))
        super().__init__(path, stack)
        self.two.token = OLD
        self.desired = self.fleet()
        self.plugins: frozenset[str] = frozenset()
        self.secured: ExitStack | None = None

    def fleet(self, two: str = "worker-2") -> Desired:
        connection = Connection(argocd=two)
        return desired(
            clusters=(cluster("worker-1"), cluster("worker-2", connection=connection)),
            fleet=ModelFleet(argocd=ArgoCD(connection=Connection(context="control"))),
        )

    def login(self, token: str = "") -> None:
        kubeconfig(self.path, ("worker-1", self.one.url), ("control", self.control.url), token=token)

    def store(self, config: Mapping[str, Any], *, url: str = "", called: str = "") -> None:
        self.control.put("secrets", cluster_secret("worker-2", url or self.two.url, config, called=called))

    def view(self, pace: WatchTiming = QUICK, _patience: timedelta = PATIENCE) -> KubeObservations:
        view = KubeObservations(
            self.path, clock=SystemClock(), wake=self.woken.append, patience=PATIENCE, pace=pace, plugins=self.plugins
        )
        self.stack.callback(view.close)
        if self.secured is not None:
            self.stack.callback(self._unplug, self.secured, view)
        return view

    def _unplug(self, secured: ExitStack, view: KubeObservations) -> None:
        """End the server before its client: TLS connections that a client ends wait for the server's goodbye."""
        secured.close()
        until(lambda: any("cannot be reached" in line for line in trouble(view)))


@pytest.fixture
def logins(tmp_path: Path) -> Iterator[Logins]:
    with ExitStack() as stack:
        yield Logins(tmp_path, stack)


def trouble(view: KubeObservations) -> list[str]:
    return [str(problem) for problem in view.observe().problems]


def test_token_of_the_secret_opens_the_cluster(logins: Logins) -> None:
    logins.store({"bearerToken": OLD})
    view = logins.following()
    assert (free(view), free(view, TWO_NAME)) == (8, 8)
    assert trouble(view) == []


def test_only_cluster_secrets_of_argo_cds_namespace_are_asked_for(logins: Logins) -> None:
    logins.store({"bearerToken": OLD})
    logins.following()
    asked = [(path, query["labelSelector"]) for _, path, query in list(logins.control.asked) if path != "/version"]
    assert set(asked) == {(SECRETS, "argocd.argoproj.io/secret-type=cluster")}


def test_password_of_the_secret_opens_the_cluster(logins: Logins) -> None:
    logins.two.token = f"Basic {base64.b64encode(f'ada:{OLD}'.encode()).decode()}"
    logins.store({"username": "ada", "password": OLD})
    assert free(logins.following(), TWO_NAME) == 8


def test_rotated_token_is_used_at_once(logins: Logins) -> None:
    logins.store({"bearerToken": OLD})
    view = logins.following(LASTING)
    until(lambda: logins.two.count("/pods", watch=True) and logins.two.count("/nodes", watch=True))
    asked = len(logins.two.asked)
    logins.two.token = NEW
    logins.store({"bearerToken": NEW})
    until(lambda: any("watch" in query and token == NEW for token, _, query in logins.two.asked[asked:]))
    # What is not served is asked for over and over: with the old token until the Secret's change has come.
    tokens = [token for token, path, _ in logins.two.asked[asked:] if path != "/version"]
    assert set(tokens[tokens.index(NEW) :]) == {NEW}
    logins.two.put("pods", pod("a", on="gpu-1"))
    until(lambda: free(view, TWO_NAME) == 7)
    assert logins.two.count("/pods", watch=False) == 1
    assert trouble(view) == []


def test_token_that_is_refused_is_told_until_the_secret_has_another(logins: Logins) -> None:
    logins.store({"bearerToken": NEW})
    view = logins.following()
    (told,) = trouble(view)
    assert told == (
        "cluster worker-2: cannot be watched: does not take our credentials"
        " (have Argo CD log in to it again: argocd cluster add, for the cluster called worker-2 there)"
    )
    logins.store({"bearerToken": OLD})
    until(lambda: TWO_NAME in view.observe().clusters)
    until(lambda: trouble(view) == [])


def test_secret_that_comes_later_is_found(logins: Logins) -> None:
    view = logins.following()
    assert trouble(view) == [
        "cluster worker-2: cannot be watched: Argo CD has no cluster Secret whose name is 'worker-2'"
    ]
    logins.store({"bearerToken": OLD})
    until(lambda: TWO_NAME in view.observe().clusters)
    until(lambda: trouble(view) == [])


def test_secret_that_goes_takes_the_way_along_for_that_cluster_alone(logins: Logins) -> None:
    logins.store({"bearerToken": OLD})
    view = logins.following()
    logins.woken.clear()
    logins.control.delete("secrets", "cluster-worker-2", "argocd")
    until(lambda: len(trouble(view)) == 1)
    (told,) = trouble(view)
    assert told == "cluster worker-2: cannot be watched: Argo CD has no cluster Secret whose name is 'worker-2'"
    until(lambda: logins.woken)
    time.sleep(0.3)
    last, asked = seen(view, TWO_NAME).observed_at, len(logins.two.asked)
    time.sleep(1.2)
    assert seen(view, TWO_NAME).observed_at == last
    assert len(logins.two.asked) == asked, "nothing is asked with a login that is gone"
    first = seen(view).observed_at
    until(lambda: seen(view).observed_at > first)


def test_two_secrets_of_one_name_are_one_problem(logins: Logins) -> None:
    logins.store({"bearerToken": OLD}, called="a")
    logins.store({"bearerToken": OLD}, called="b")
    view = logins.following()
    assert trouble(view) == [
        "cluster worker-2: cannot be watched: Argo CD has several cluster Secrets for 'worker-2': a, b"
    ]
    assert free(view) == 8


def test_secrets_that_we_may_not_read_are_told_with_the_way_out(logins: Logins) -> None:
    logins.control.refuses = {"/secrets": 403}
    view = logins.following()
    told = trouble(view)
    assert told[0].startswith("cluster worker-2: cannot be watched: the cluster Secrets of Argo CD have not been read")
    assert told[1].startswith("Argo CD: secrets are not looked at: forbids it")
    assert told[1].endswith("(apply bootstrap/rbac-argocd-logins.yaml there)")
    logins.store({"bearerToken": OLD})
    logins.control.refuses.clear()
    until(lambda: trouble(view) == [] and TWO_NAME in view.observe().clusters)


def test_login_that_is_known_outlives_argo_cds_cluster(logins: Logins) -> None:
    logins.store({"bearerToken": OLD})
    view = logins.following()
    logins.control.hangs.set()
    logins.control.drop()
    until(lambda: any(line.startswith("Argo CD: secrets are not looked at") for line in trouble(view)))
    logins.two.drop()
    logins.two.put("pods", pod("a", on="gpu-1"))
    until(lambda: free(view, TWO_NAME) == 7)


def test_cluster_that_argo_cd_runs_in_is_reached_as_argo_cd_is(logins: Logins) -> None:
    logins.control.put("nodes", node("gpu-1"))
    logins.desired = logins.fleet("in-cluster")
    assert free(logins.following(LASTING), TWO_NAME) == 8
    assert logins.control.count("/nodes", watch=False) == 1


def test_account_of_a_secret_for_argo_cds_own_cluster_is_used(logins: Logins) -> None:
    logins.control.put("nodes", node("gpu-1"))
    logins.store({"bearerToken": NEW}, url="https://kubernetes.default.svc")
    assert free(logins.following(), TWO_NAME) == 8
    assert {token for token, path, _ in logins.control.asked if path == "/api/v1/nodes"} == {NEW}


def test_other_way_to_argo_cd_is_taken_at_once(logins: Logins) -> None:
    logins.store({"bearerToken": OLD})
    view = logins.following()
    view.follow(
        desired(
            clusters=logins.desired.clusters.values(),
            fleet=ModelFleet(argocd=ArgoCD(connection=Connection(context="worker-1"))),
        )
    )
    until(lambda: any("has no cluster Secret" in line for line in trouble(view)))


# proxies


@pytest.fixture
def proxy() -> Iterator[int]:
    """Refuse every client, as a proxy does that wants another login; gives the port."""

    class Refusing(LoopbackHandler):
        def do_CONNECT(self) -> None:
            self.send_response(407, "Proxy Authentication Required")
            self.send_header("Content-Length", "0")
            self.end_headers()

    with LoopbackServer(Refusing) as server:
        yield server.server_port


def test_password_of_a_proxy_that_refuses_is_not_told(logins: Logins, proxy: int) -> None:
    url = f"http://ada:{OLD}@127.0.0.1:{proxy}"
    logins.store({"bearerToken": NEW, "proxyUrl": url}, url="https://10.9.8.7:6443")
    (told,) = trouble(logins.following())
    assert told == "cluster worker-2: cannot be watched: cannot be reached: 407 Proxy Authentication Required"


# programs


def plugin(path: Path, token: str) -> dict[str, Any]:
    """Make a program that prints a token and leaves word that it was called; returns how a Secret names it."""
    answer = {"kind": "ExecCredential", "apiVersion": "v1", "status": {"token": token}}
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"open({str(path) + '.called'!r}, 'a').write(json.dumps([sys.argv[1:], dict(os.environ)]) + '\\n')\n"
        f"print({json.dumps(answer)!r})\n"
    )
    path.chmod(0o755)
    return {"command": path.name, "args": ["--for", OLD], "env": {"PROFILE": "blue"}, "apiVersion": "v1"}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "bin"
    found.mkdir()
    monkeypatch.setenv("PATH", str(found))
    monkeypatch.setenv("OVERSPILL_GIT_PASSWORD", NEW)
    return found


def test_program_of_a_secret_is_not_run(logins: Logins, programs: Path) -> None:
    logins.store({"execProviderConfig": plugin(programs / "token-helper", OLD)})
    (told,) = trouble(logins.following())
    assert told == (
        "cluster worker-2: cannot be watched: Argo CD's Secret wants to run the program 'token-helper' here to log in,"
        " which is not allowed (list it in OVERSPILL_LOGIN_PLUGINS and install it, or give the Cluster a connection by"
        " context)"
    )
    assert not (programs / "token-helper.called").exists()


def test_program_that_is_allowed_gives_the_token_and_sees_no_setting_of_ours(logins: Logins, programs: Path) -> None:
    logins.plugins = frozenset({"token-helper"})
    logins.store({"execProviderConfig": plugin(programs / "token-helper", OLD)})
    view = logins.following()
    assert (free(view, TWO_NAME), trouble(view)) == (8, [])
    args, env = json.loads((programs / "token-helper.called").read_text().splitlines()[0])
    assert (args, env["PROFILE"]) == (["--for", OLD], "blue")
    assert "OVERSPILL_GIT_PASSWORD" not in env


def test_secret_cannot_say_where_an_allowed_program_lies(logins: Logins, programs: Path, tmp_path: Path) -> None:
    other = tmp_path / "token-helper"
    call = plugin(other, OLD)
    plugin(programs / "token-helper", OLD)
    logins.plugins = frozenset({"token-helper"})
    logins.store({"execProviderConfig": {**call, "env": {"PATH": str(tmp_path)}}})
    assert free(logins.following(), TWO_NAME) == 8
    assert not (tmp_path / "token-helper.called").exists()


def test_login_to_aws_is_a_program_like_any_other(logins: Logins, programs: Path) -> None:
    logins.store({"awsAuthConfig": {"clusterName": "eu-1"}})
    view = logins.following()
    assert "wants to run the program 'argocd-k8s-auth'" in trouble(view)[0]
    assert "OVERSPILL_LOGIN_PLUGINS" in trouble(view)[0]


@pytest.mark.parametrize("body", [f"echo {OLD} >&2; exit 1", f"echo {OLD}", "echo '{}'"])
def test_program_that_fails_is_told_without_its_words(logins: Logins, programs: Path, body: str) -> None:
    path = programs / "token-helper"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    logins.plugins = frozenset({"token-helper"})
    logins.store({"execProviderConfig": {"command": "token-helper"}})
    assert trouble(logins.following()) == [
        "cluster worker-2: cannot be watched: cannot be logged in to: 'token-helper' failed (run it here to see why)"
    ]


def test_program_that_is_not_there_is_told(logins: Logins, programs: Path) -> None:
    logins.plugins = frozenset({"token-helper"})
    logins.store({"execProviderConfig": {"command": "token-helper"}})
    (told,) = trouble(logins.following())
    assert told.endswith("cannot be logged in to: 'token-helper': No such file or directory")


# certificates


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Make a certificate for the server and one for us."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl: not on the PATH, and Python makes no certificates")
    for name in ("server", "client"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:kube.example",
             "-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.crt")],
            check=True, capture_output=True,
        )  # fmt: skip # a command line, word by word
    return tmp_path


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.fixture
def secured(logins: Logins, keys: Path) -> Cluster:
    """Serve worker-2 over TLS, for those with our certificate."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(keys / "server.crt", keys / "server.key")
    trust.load_verify_locations(keys / "client.crt")
    trust.verify_mode = ssl.CERT_REQUIRED
    logins.two = Cluster()
    logins.two.put("nodes", node("gpu-1"))
    logins.secured = ExitStack()
    logins.secured.enter_context(serving(logins.two, trust))
    return logins.two


def test_certificates_of_the_secret_open_the_cluster_and_leave_no_file(
    logins: Logins, secured: Cluster, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = keys / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    tls = {"caData": encoded(keys / "server.crt"), "serverName": "kube.example"}
    tls |= {"certData": encoded(keys / "client.crt"), "keyData": encoded(keys / "client.key")}
    logins.store({"tlsClientConfig": tls})
    view = logins.following()
    assert (free(view, TWO_NAME), trouble(view)) == (8, [])
    assert list(place.iterdir()) == []


def test_server_that_is_not_known_is_refused_unless_the_secret_says_so(
    logins: Logins, secured: Cluster, keys: Path
) -> None:
    ours = {"certData": encoded(keys / "client.crt"), "keyData": encoded(keys / "client.key")}
    logins.store({"tlsClientConfig": ours})
    view = logins.following()
    assert "cannot be reached: " in trouble(view)[0]
    assert trouble(view)[0].endswith("is not trusted: self-signed certificate")
    logins.store({"tlsClientConfig": {**ours, "insecure": True}})
    until(lambda: TWO_NAME in view.observe().clusters)


def test_certificate_that_is_none_is_told(logins: Logins) -> None:
    rubbish = base64.b64encode(OLD.encode()).decode()
    logins.store({"tlsClientConfig": {"certData": rubbish, "keyData": rubbish}}, url="https://127.0.0.1:1")
    (told,) = trouble(logins.following())
    assert told.startswith("cluster worker-2: cannot be watched: cannot be connected to: ")


# nothing of it is told


def test_nothing_of_a_secret_is_logged_or_told(
    logins: Logins, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rubbish = base64.b64encode(OLD.encode()).decode()
    told: list[str] = []
    view = logins.following()
    for config, wrong in (
        ({"bearerToken": NEW}, "does not take our credentials"),
        ({"bearerToken": [NEW]}, "no text"),
        ({"proxyUrl": f"http://ada:{NEW}@127.0.0.1:1", "bearerToken": OLD}, "cannot be reached"),
        ({"username": NEW, "password": OLD}, "does not take our credentials"),
        ({"tlsClientConfig": {"certData": rubbish, "keyData": rubbish}}, "be connected to"),
        ({"tlsClientConfig": {"caData": rubbish}}, "be connected to"),
        ({"execProviderConfig": {"command": "helper", "args": [OLD], "env": {"TOKEN": NEW}}}, "wants to run"),
        (OLD, "config is not JSON"),
    ):
        logins.control.put("secrets", cluster_secret("worker-2", logins.two.url, config))
        until(lambda wrong=wrong: wrong in str(trouble(view)))
        told += trouble(view)
    out, err = capfd.readouterr()
    everything = "\n".join([*told, out, err, caplog.text, repr(structlog.get_config())])
    for secret in (OLD, NEW, rubbish):
        assert secret not in everything
