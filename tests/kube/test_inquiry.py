"""Single questions go to all servers at the same time, by the logins of the daemon, and each has its own time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kube import KubeInquiry
from reconciler.core.readiness.check import AskedServer
from reconciler.core.readiness.needed_rights import fleet_servers
from reconciler.core.readiness.question import VERSION, AnswerKind, ApiQuestion, access_question, object_question
from reconciler.core.readiness.server import LoginFault, ServerAnswers
from reconciler.model.ids import ClusterName
from reconciler.model.manifest_source import ArgoCDSource, SourceKey
from reconciler.model.policy import ArgoCD, Connection, Desired, EngineName, Fleet
from tests.builders.engine_objects import cluster_secret
from tests.builders.inputs import cluster, desired
from tests.builders.watched_clusters import QUICK
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

ONE = AskedServer(title="worker-1", cluster=ClusterName("worker-1"), connection=None)
TWO = AskedServer(title="worker-2", cluster=ClusterName("worker-2"), connection=None)
SECRET = object_question("v1", "Secret", "hub", "demo", metadata_only=True)


class Servers:
    """Two clusters and a control plane, and a kubeconfig of all three."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.one, self.two, self.control = Cluster(), Cluster(), Cluster()
        for each in (self.one, self.two, self.control):
            stack.enter_context(serving(each))
        self.path = path / "kubeconfig"
        self.know(worker_1=self.one, worker_2=self.two, control=self.control)

    def know(self, **clusters: Cluster) -> None:
        kubeconfig(self.path, *((name.replace("_", "-"), each.url) for name, each in clusters.items()))

    def ask(
        self,
        *servers: AskedServer,
        question: ApiQuestion = VERSION,
        fleet: Desired | None = None,
        patience: float = 20,
        path: Path | None = None,
    ) -> dict[str, ServerAnswers]:
        inquiry = KubeInquiry(path or self.path, clock=SystemClock(), patience=timedelta(seconds=patience), pace=QUICK)
        known = fleet or desired(clusters=(cluster("worker-1"), cluster("worker-2")))
        answers = inquiry.ask(known, {server: [question] for server in servers})
        return {server.title: answers[server] for server in servers}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(tmp_path, stack)


def test_server_that_hangs_is_waited_for_within_a_bound(servers: Servers) -> None:
    servers.two.hangs.set()
    trouble = servers.ask(TWO, patience=0.3)["worker-2"].trouble
    assert trouble is not None
    assert trouble.fault is LoginFault.UNREACHED
    # Whichever runs out first: the bound of a request, or that of the server as a whole.
    assert trouble.why in ("does not answer within 0.3 s", "did not answer in time")


def test_question_that_is_not_answered_in_time_leaves_those_that_were(servers: Servers) -> None:
    servers.one.refuses["/version"] = 403  # an answer, too
    servers.one.refuses["/secrets/hub"] = 500
    (answers,) = servers.ask(ONE, question=SECRET).values()
    assert answers.trouble is None
    assert answers.answers[SECRET].kind is AnswerKind.UNANSWERED
    assert "answers 500" in answers.answers[SECRET].why


def test_values_of_secrets_are_not_sent(servers: Servers) -> None:
    servers.one.put("secrets", {"metadata": {"name": "hub", "namespace": "demo"}, "data": {"token": "c2VjcmV0"}})
    (answers,) = servers.ask(ONE, question=SECRET).values()
    assert answers.answers[SECRET].kind is AnswerKind.GIVEN
    assert "data" not in answers.answers[SECRET].body


@pytest.mark.parametrize("denied", [False, True])
def test_server_reviews_what_the_login_may_do(servers: Servers, denied: bool) -> None:
    question = access_question("list", "apps", "deployments", "demo")
    servers.one.denied |= {"demo/deployments.apps"} if denied else set()
    (answers,) = servers.ask(ONE, question=question).values()
    assert answers.answers[question].body["status"]["allowed"] is not denied
    (asked,) = [query for _, path, query in servers.one.asked if path.endswith("/selfsubjectaccessreviews")]
    wanted = {"verb": "list", "group": "apps", "resource": "deployments", "namespace": "demo"}
    assert asked["spec"]["resourceAttributes"] == wanted


def test_clock_of_a_server_is_told_beside_ours(servers: Servers) -> None:
    servers.one.ahead = 3600
    (answers,) = servers.ask(ONE).values()
    skew = answers.answers[VERSION].skew
    assert skew is not None
    assert timedelta(minutes=30) < skew < timedelta(minutes=90)


def test_cluster_is_asked_by_the_login_that_argo_cd_has(servers: Servers) -> None:
    servers.know(control=servers.control)
    servers.two.token = "sesame"
    servers.control.put("secrets", cluster_secret("worker-2", servers.two.url, {"bearerToken": "sesame"}))
    two = cluster("worker-2", connection=Connection(argocd="worker-2"))
    control = Fleet(argocd=ArgoCD(connection=Connection(context="control")))
    fleet = desired(clusters=(cluster("worker-1"), two), fleet=control)
    asked = replace(TWO, connection=two.connection)
    (answers,) = servers.ask(asked, fleet=fleet).values()
    assert answers.answers[VERSION].kind is AnswerKind.GIVEN
    assert {token for token, *_ in servers.two.asked} == {"sesame"}


def test_argo_cd_that_only_names_sources_is_asked(servers: Servers) -> None:
    source = frozenset({SourceKey(ArgoCDSource(name="vllm"))})
    plane = AskedServer(title="Argo CD", engine=EngineName.ARGOCD, connection=Connection(context="control"))
    control = Fleet(argocd=ArgoCD(connection=plane.connection))
    fleet = replace(desired(clusters=(cluster("worker-1"),), fleet=control), sources=source)
    assert plane in fleet_servers(fleet)
    (answers,) = servers.ask(plane, fleet=fleet).values()
    assert answers.answers[VERSION].kind is AnswerKind.GIVEN
    servers.know(worker_1=servers.one)
    (answers,) = servers.ask(plane, fleet=fleet).values()
    assert answers.trouble is not None
    assert answers.trouble.why.startswith("the kubeconfig has no context control")


def test_kubeconfig_that_cannot_be_read_is_the_reason(servers: Servers, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("clusters: {")
    (answers,) = servers.ask(ONE, path=broken).values()
    assert answers.trouble is not None
    assert answers.trouble.fault is LoginFault.NO_CONTEXT
    assert answers.trouble.why == f"{broken}: is not YAML, from line 1 on"


def test_control_plane_that_the_fleet_does_not_describe_is_not_asked(servers: Servers) -> None:
    plane = AskedServer(title="Argo CD", engine=EngineName.ARGOCD, connection=None)
    (answers,) = servers.ask(plane).values()
    assert answers.trouble is not None
    assert answers.trouble.fault is LoginFault.NO_CONNECTION
    assert servers.control.asked == []
