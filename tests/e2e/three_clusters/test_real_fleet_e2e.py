"""docs/tutorial/real-fleet.md is a promise: its commands lead from kubeconfigs to a burst and back.

Its blocks are run one after the other, as in one shell, and before `overspill run` the one of
docs/how-to/operations.md that has the engines told of each push. Only addresses and accounts of its examples are put
right, and the policy's time before a return is made short.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reconciler.environment import PREFIX, VARIABLES
from tests.e2e import argo_cd, flux
from tests.e2e.api_server import Json
from tests.e2e.conftest import CHECKOUT, Fleet
from tests.e2e.control_plane import Cluster, program
from tests.e2e.test_lend_e2e import NAMESPACE, SMALL
from tests.e2e.three_clusters.clusters import ARGO_CD, FLUX, HOME, NODES, ThreeClusters

PAGE = (CHECKOUT / "docs" / "tutorial" / "real-fleet.md").read_text()
BLOCKS = re.findall(r"^```sh ?(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(NOTIFY,) = re.findall(
    r"^```sh notify\n(.*?)^```$",
    (CHECKOUT / "docs" / "how-to" / "operations.md").read_text(),
    re.MULTILINE | re.DOTALL,
)
"""How the engines are told of each push; the page leads there, and without it they look every few minutes."""
BEGINNING, RETURN = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
"""The logs that it shows: up to the bursts, and what comes upon them."""

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
REFRESHER = "argocd-applicationset-controller"
AT_HOME = sum(gpus for _, gpus, _ in NODES[HOME])
SHORTENED = "sed --in-place '/scaleDown:/{n;s/15m/20s/}' fleet/policies/serving.yaml"
"""Done before the files are committed, so that the return comes in the time of a test."""
OURS = ("deployment/overspill", "service/overspill", "secret/overspill")
PATIENCE = 180
"""Seconds for what waits for engines; they may poll."""


class Person:
    """Somebody who types what the page says, and has what it asks for."""

    def __init__(self, three: ThreeClusters, fleet: Fleet) -> None:
        """Lay out a home directory, the logins of an administrator, and the passwords of the git accounts."""
        self.three = three
        self.there, home, bin_ = (fleet.path / name for name in ("there", "home", "bin"))
        for directory in (self.there, home, bin_, home / ".kube"):
            directory.mkdir()
        administrator(home / ".kube" / "config", three)
        command = bin_ / "overspill"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m reconciler "$@"\n')
        command.chmod(0o755)
        account, host = fleet.server.username, urlsplit(fleet.url).netloc
        (home / ".git-credentials").write_text(f"http://{account}:{fleet.server.password}@{host}\n")
        (home / ".gitconfig").write_text("[user]\n\tname=Ann\n\temail=ann@example.com\n[credential]\n\thelper=store\n")
        for name in ("git-password", "git-read-password"):
            (self.there / name).write_text(fleet.server.password + "\n")
        self._kept = fleet.path / "environment"
        self._kept.touch()
        ours = ("GIT_", "OVERSPILL_", "KUBECONFIG")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        paths = [str(bin_), str(Path(program("kubectl")).parent), os.environ["PATH"]]
        self._env = {
            **inherited,
            "HOME": str(home),
            "PATH": os.pathsep.join(paths),
            "PYTHONPATH": str(CHECKOUT),
        }
        server, refresher = three.argo_cd.webhook_urls
        self._addresses = {
            "https://git.example.com/acme/fleet.git": fleet.url,
            "username=engines": f"username={account}",  # the server of these tests has one account
            "https://argocd.example.com/api/webhook": server,
            "https://argocd-applicationset.example.com/api/webhook": refresher,
        }

    def types(self, block: str, *, answers: str = "") -> str:
        """Run a block after all that came before it, and return what it prints; `answers` are typed on a terminal."""
        keep = f"\n{{ export -p; umask -p; }} > {shlex.quote(str(self._kept))}\n"
        person, terminal = pty.openpty()
        try:
            os.write(person, answers.encode())
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", self._in_this_shell(block) + keep], cwd=self.there, env=self._env,
                stdin=terminal if answers else None, check=False, capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip # a command line, word by word
        finally:
            os.close(person)
            os.close(terminal)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @contextmanager
    def running(self, block: str) -> Iterator[Callable[[], str]]:
        """Run a block that stays in the foreground, in another shell; yields what tells its log."""
        log = self.there.parent / "daemon.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                ["bash", "-euc", self._in_this_shell(f"exec {block}")],
                cwd=self.there,
                env=self._env,
                stdout=stream,
                stderr=stream,
            )
            try:
                yield log.read_text
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0, log.read_text()
            finally:
                process.kill()
                process.wait()

    def _in_this_shell(self, block: str) -> str:
        for example, ours in self._addresses.items():
            block = block.replace(example, ours)
        if "https://flux.worker-2.example.com" in block:  # known once the page has made the Receiver
            receiver = urlsplit(self.three.flux.webhook_url())
            block = block.replace("https://flux.worker-2.example.com", f"{receiver.scheme}://{receiver.netloc}")
        return f". {shlex.quote(str(self._kept))}\n{block}"


@pytest.fixture
def person(three_clusters: ThreeClusters, fleet: Fleet) -> Iterator[Person]:
    """Stand before three clusters, one of them full, and an empty repository, and clean up behind whoever typed."""
    if reason := flux.lacking(flux.NOTIFICATION):
        pytest.skip(reason)
    control = three_clusters.clusters[ARGO_CD]
    # What a restart is asked of: Argo CD's parts are processes here, and the test plays their ReplicaSet.
    labels = {"app": REFRESHER}
    container = {"name": "main", "image": "registry.invalid/argocd:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    path = f"/apis/apps/v1/namespaces/{argo_cd.NAMESPACE}/deployments"
    control.create(path, {"metadata": {"name": REFRESHER}, "spec": spec})
    with running_full(three_clusters):
        three_clusters.left_to_a_person()
        try:
            yield Person(three_clusters, fleet)
        finally:
            control.call("DELETE", f"{path}/{REFRESHER}")
            control.kubectl("delete", *OURS, "--namespace=overspill-system", "--ignore-not-found")


@contextmanager
def running_full(three: ThreeClusters) -> Iterator[None]:
    """Run a Deployment that takes all GPUs of worker-1, in a namespace that the others lack and no later test finds."""
    home = three.clusters[HOME]
    home.ensure_namespace(NAMESPACE)
    spec: Json = SMALL["spec"]
    home.create(DEPLOYMENTS, {**SMALL, "spec": {**spec, "replicas": AT_HOME}})
    home.until(lambda: running(home) == AT_HOME, "worker-1 does not run full")
    try:
        yield
    finally:
        three.flux.forget()  # while the rights in the namespace are there by which it takes its objects away
        three.argo_cd.forget()
        for cluster in three.clusters.values():
            cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=60s")


def test_the_page_takes_a_reader_from_a_kubeconfig_to_a_first_burst_and_back(person: Person) -> None:
    by_flux, by_argo_cd = (person.three.clusters[name] for name in (FLUX, ARGO_CD))
    marks = [mark for mark, _ in BLOCKS]
    start, end = marks.index("daemon"), marks.index("return")
    for mark, block in BLOCKS[:start]:
        if mark == "doctor":
            lacking = person.types(f"{block.rstrip()} || test $? = 1")
            for command in ("overspill grant ", "overspill bootstrap flux ", "overspill bootstrap argocd "):
                assert command in lacking, lacking
            continue
        shortened = block.replace("git -C fleet add", f"{SHORTENED}\ngit -C fleet add")
        printed = person.types(shortened)
        if "overspill lend" in block:
            assert re.search("^Place +llm/vllm ", printed, re.MULTILINE), printed
            assert "0 errors, 0 warnings" in printed, printed
            assert re.search("scaleDown:\n +window: 20s ", person.types("cat fleet/policies/serving.yaml")), block
        if "overspill doctor" in block:
            assert re.search(r"^\d+ ok, 0 missing, \d+ unknown\.$", printed, re.MULTILINE), printed
            assert "rights of bootstrap/rbac.yaml: overspill-system/overspill may list and watch" in printed, printed
            for seen in (
                f"namespace {NAMESPACE}: there",
                "AppProject overspill: there",
                "Receiver placements: there and ready",
            ):
                assert re.search(f"^ok +{seen}$", printed, re.MULTILINE), printed
        if "overspill plan" in block:
            assert re.search("^Start .* the output branch$", printed, re.MULTILINE), printed
            assert re.search(f"^Place +llm/vllm +\\S+ +({FLUX}|{ARGO_CD}) +", printed, re.MULTILINE), printed
    person.types(NOTIFY)
    the_controller_starts_anew(person)
    wait(lambda: webhooks_reached(person) == len((ARGO_CD, ARGO_CD, FLUX)), person.three.argo_cd.last_words)
    with person.running(BLOCKS[start][1]) as log:
        wait(lambda: "pushed 2 commits to placements" in log(), log)
        for mark, block in BLOCKS[start + 1 : end]:
            if mark == "burst":
                wait(lambda: (running(by_flux), running(by_argo_cd)) == (8, 3), log)
                wait(lambda: healthy(person) == 2, log)
                printed = person.types(block)
                assert story(printed) == story(BEGINNING), printed
                assert len(re.findall("Running +Healthy", printed)) == 2, printed
                assert re.search("^llm/vllm +worker-1 +serving +12 +2 ", printed, re.MULTILINE), printed
            else:
                person.types(block)
        wait(lambda: not any(cluster.items(DEPLOYMENTS) for cluster in (by_flux, by_argo_cd)), log)
        printed = person.types(BLOCKS[end][1])
        assert story(printed) == story(BEGINNING + RETURN), printed
    assert "warning" not in log(), log()
    for _, block in BLOCKS[end + 1 :]:
        person.types(block)


def test_no_command_of_the_page_escapes_the_test() -> None:
    assert {mark for mark, _ in BLOCKS} == {"run", "doctor", "daemon", "burst", "return"}
    for once in ("doctor", "daemon", "burst", "return"):
        assert [mark for mark, _ in BLOCKS].count(once) == 1


def test_every_variable_that_it_names_is_one_that_the_daemon_reads() -> None:
    named = set(re.findall(rf"{PREFIX}([A-Z_]+[A-Z])", PAGE))
    assert named
    assert named <= set(VARIABLES)


def the_controller_starts_anew(person: Person) -> None:
    """Do what the Deployment of Argo CD's ApplicationSet controller would, now that it was asked to restart."""
    engine = person.three.argo_cd
    engine.webhook_secret = (person.there / "notify-secret").read_text().strip()
    engine.kill(REFRESHER)
    engine.start(REFRESHER)


def webhooks_reached(person: Person) -> int:
    """Count the webhooks that answer, as `overspill doctor` tells it with the daemon's own login."""
    printed = person.types("overspill doctor || true")
    assert "logged in as overspill-system/overspill" in printed, printed
    return len(re.findall("^ok +webhook .*: reached", printed, re.MULTILINE))


def administrator(target: Path, three: ThreeClusters) -> None:
    """Write the kubeconfig that the page begins with: all rights in each cluster, by contexts of their names."""
    kinds: dict[str, list[Json]] = {"clusters": [], "users": [], "contexts": []}
    for name, cluster in three.clusters.items():
        access, user = cluster.access, f"{name}-admin"
        server = {"server": access.server, "certificate-authority": str(access.authority)}
        kinds["clusters"].append({"name": name, "cluster": server})
        kinds["users"].append({"name": user, "user": {"token": access.token}})
        kinds["contexts"].append({"name": name, "context": {"cluster": name, "user": user}})
    target.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **kinds}))


def story(told: str) -> list[str]:
    """Find the subjects of commits in what was printed, whether or not pods began to wait in the same second.

    Those that did so later come by a resize, and are not in the number that the burst began with. Reverts of one pass
    are sorted: which cluster comes first then follows from how soon pods were ready there.
    """
    subjects = re.findall(r'^(?:start\(|burst\(|Revert "burst\().*$', told, re.MULTILINE)
    plain = [re.sub(r"\d+ replicas?", "some replicas", subject) for subject in subjects]
    first = next((index for index, subject in enumerate(plain) if subject.startswith("Revert")), len(plain))
    return [*plain[:first], *sorted(plain[first:])]


def running(cluster: Cluster) -> int:
    """Count the pods of the workload that run in a cluster."""
    return sum(pod["status"].get("phase") == "Running" for pod in cluster.items(PODS))


def healthy(person: Person) -> int:
    """Count the placements that are healthy by the word of their engine."""
    placements = json.loads(person.types("overspill status -o json"))["placements"]
    return sum("Healthy" in json.dumps(each) for each in placements)


def wait(condition: Callable[[], bool], log: Callable[[], str]) -> None:
    """Wait for what the daemon and the engines do by themselves."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, log()
        time.sleep(0.5)
