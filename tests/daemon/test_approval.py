"""Bursts that are approved: proposed, answered on the host or by a command, placed once, and all other ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler import bulkhead
from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.remote import Credentials
from reconciler.adapters.pull_requests import HostPullRequests
from reconciler.core.decide.orders.approve import find_proposal, plan_approval, plan_rejection
from reconciler.core.decide.state.order import Order, Ruling
from reconciler.core.ledger.proposal_record import proposal_id, proposal_path, write_proposal
from reconciler.core.readiness.branch_rules import HostSoftware
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.proposals.desk import ProposalDesk, numbered
from reconciler.daemon.reconcile import Outcome
from reconciler.daemon.status import status as status_of
from reconciler.daemon.steer import carry_out, draft_from_git
from reconciler.errors import InvalidInput, OverspillError, Transient
from reconciler.model.approval import BurstProposal
from reconciler.model.ids import TemplateName, WorkloadId
from reconciler.model.plan import Reason
from reconciler.model.request import Denial, Verb
from reconciler.model.tree import Identity
from tests.builders.passes import SOURCE_FILES, Passes
from tests.builders.remote import Remote
from tests.fakes.git_host import TOKEN, GitHost, Request, hosting
from tests.fakes.memory_repository import OURS
from tests.fakes.mortal_repository import Fuse, Killed, Mortal

FILES = {
    **SOURCE_FILES,
    "policies.yaml": SOURCE_FILES["policies.yaml"] + "  approval: PullRequest\n",
}
ADA = Identity(name="Ada", email="ada@example.com")
GRACE = Identity(name="Grace", email="grace@example.com")
every_host = pytest.mark.parametrize("software", HostSoftware)


class Fleet:
    """A daemon on a real repository, its desk, and the host."""

    def __init__(self, stack: ExitStack, host: GitHost, path: Path) -> None:
        self.host, self.remote, self.path, self._stack = host, host.remote, path, stack
        self.daemons = 0
        self.passes = self.start()

    def start(self) -> Passes:
        """Start a daemon that knows nothing but git."""
        self.daemons += 1
        opened = [
            GitRepository(self.remote.url, cache=self.path / f"{name}-{self.daemons}", committer=OURS)
            for name in ("cache", "desk")
        ]
        self._stack.enter_context(opened[0])
        passes = Passes(opened[0])
        passes.missing = 3
        login = Credentials(username="overspill", password=TOKEN)
        pull_requests = HostPullRequests(self.host.repository, login, timeout=5)
        self.desk = ProposalDesk(
            repository=opened[1],
            branch=BranchReader(opened[1]),
            pull_requests=pull_requests,
            clock=passes,
            author=OURS,
            output_branch="placements",
        )
        self._stack.callback(self.desk.close)
        return passes

    def tend(self) -> Outcome | None:
        """Have the desk look, and a pass carry out what it says."""
        orders = numbered(self.desk.tend())
        if not orders:
            return None
        self.passes.orders = orders
        try:
            return self.passes.run_once()
        finally:
            self.passes.orders = ()

    def propose(self) -> Request:
        """Run until the burst has its pull request, and the ledger its address."""
        self.passes.run()
        self.tend()
        assert self.proposal.pull_request
        return self.host.requests[-1]

    @property
    def proposals(self) -> dict[str, BurstProposal]:
        repository = self.passes.repository
        found = BranchReader(repository).ledger(repository.fetch().output).proposals
        return {str(workload): proposal for workload, proposal in found.items()}

    @property
    def proposal(self) -> BurstProposal:
        return self.proposals["llm/vllm"]

    @property
    def placed(self) -> list[tuple[str, int]]:
        self.passes.repository.fetch()
        return sorted((placement.cluster, placement.replicas) for placement in self.passes.placements())

    @property
    def subjects(self) -> list[str]:
        return self.remote.subjects("placements")

    @property
    def branches(self) -> list[str]:
        refs = self.remote.git("for-each-ref", "--format=%(refname:short)", "refs/heads/overspill/")
        return refs.splitlines()

    @property
    def ledger_files(self) -> list[str]:
        return [path for path in self.remote.files("placements") if "/proposals/" in path or "/approvals/" in path]

    def why(self) -> list[Reason]:
        return [suppressed.reason for suppressed in self.passes.look().plan.suppressed]


@contextmanager
def fleet(remote: Remote, path: Path, software: HostSoftware = HostSoftware.GITEA) -> Iterator[Fleet]:
    remote.commit("main", FILES)
    with hosting(software, remote) as host, ExitStack() as stack:
        yield Fleet(stack, host, path)


@pytest.mark.parametrize(
    ("software", "how"),
    [
        (HostSoftware.GITHUB, "merge"),
        (HostSoftware.GITHUB, "squash"),
        (HostSoftware.GITLAB, "rebase"),
        (HostSoftware.GITEA, "fast-forward"),
    ],
)
def test_merged_proposal_is_placed_once(remote: Remote, tmp_path: Path, software: HostSoftware, how: str) -> None:
    with fleet(remote, tmp_path, software) as here:
        if how == "fast-forward":  # possible until a pass has noted the address: the branch has not moved on
            here.passes.run()
            here.passes.orders = numbered(here.desk.tend())
            request = here.host.requests[-1]
        else:
            request = here.propose()
        assert here.placed == []
        assert "3 replicas on worker-2" in request.title
        here.host.merge(request, how)
        here.passes.run()
        assert here.placed == [("worker-2", 3)]
        assert here.ledger_files == []
        here.tend()
        assert here.branches == []
        here.passes.run()
        assert here.placed == [("worker-2", 3)]


@every_host
def test_pull_request_shows_the_plan_the_price_and_how_long_it_stands(
    remote: Remote, tmp_path: Path, software: HostSoftware
) -> None:
    with fleet(remote, tmp_path, software) as here:
        request = here.propose()
        assert (request.base, request.state) == ("placements", "open")
        assert "3 replicas, 3 GPUs, an unknown price, for 10m" in request.body
        assert "It stands until 2026-11-20T11:00:00Z" in request.body
        assert "3 replicas missing on worker-1" in request.body
        assert here.proposal.pull_request == f"{here.host.url}/acme/fleet/{_page(software)}/1"
        changed = here.remote.git("diff", "--name-status", "placements", request.head).split("\t")
        assert changed[0] == "A"
        assert changed[1].startswith("ledger/llm/approvals/vllm-")


def _page(software: HostSoftware) -> str:
    return "-/merge_requests" if software is HostSoftware.GITLAB else "pulls"


@every_host
def test_closed_proposal_is_refused_and_holds_the_workload(
    remote: Remote, tmp_path: Path, software: HostSoftware
) -> None:
    with fleet(remote, tmp_path, software) as here:
        request = here.propose()
        here.host.close(request)
        here.tend()
        here.passes.run()
        assert (here.placed, here.proposals) == ([], {})
        assert here.subjects[0] == "proposal(llm/vllm): refused"
        assert here.why() == [Reason.HELD]
        assert "was closed" in here.passes.look().plan.suppressed[0].message
        here.tend()
        assert here.branches == []


def test_reviewer_is_the_author_of_the_refusal_where_the_host_tells(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path, HostSoftware.GITLAB) as here:
        here.host.close(here.propose(), by="grace")
        here.tend()
        assert here.remote.git("log", "-1", "--format=%an", "placements") == "grace"


def test_removed_branch_refuses_the_proposal(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        here.remote.git("update-ref", "-d", f"refs/heads/{request.head}")
        here.tend()
        assert here.subjects[0] == "proposal(llm/vllm): refused"
        assert here.placed == []


def test_merge_whose_branch_is_removed_is_a_yes(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        here.host.merge(request)
        here.remote.git("update-ref", "-d", f"refs/heads/{request.head}")
        here.tend()
        here.passes.run()
        assert here.placed == [("worker-2", 3)]


@every_host
def test_proposal_that_lapses_closes_its_pull_request(remote: Remote, tmp_path: Path, software: HostSoftware) -> None:
    with fleet(remote, tmp_path, software) as here:
        request = here.propose()
        here.passes.moment += timedelta(hours=1)
        here.passes.run()
        here.tend()
        assert "proposal(llm/vllm): nobody answered in time" in here.subjects
        assert (request.state, here.branches) == ("closed", [])
        assert len(request.comments) == 1
        assert here.why() == [Reason.HELD]


def test_demand_that_goes_withdraws_its_proposal(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        here.passes.missing = 0
        for _ in range(4):
            here.passes.run()
            here.passes.advance(40)
        here.tend()
        assert here.subjects[0] == "proposal(llm/vllm): withdrawn"
        assert (request.state, here.branches) == ("closed", [])


def test_approval_without_room_says_why_and_what_has_room_is_proposed(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.host.merge(here.propose())
        here.passes.free = {"worker-2": 0, "worker-3": 8}
        here.passes.run()
        assert here.placed == []
        assert here.subjects[:2] == [
            "propose(llm/vllm): 3 replicas on worker-3",
            "proposal(llm/vllm): approved, and not placed",
        ]
        here.tend()
        here.tend()
        assert [request.state for request in here.host.requests] == ["merged", "open"]


def test_policy_that_asks_no_more_withdraws_and_places(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        here.remote.commit("main", {"policies.yaml": SOURCE_FILES["policies.yaml"]})
        here.passes.run()
        here.tend()
        assert here.placed == [("worker-2", 3)]
        assert request.state == "closed"


def test_approval_of_another_text_is_no_approval(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        ((path, text),) = here.remote.files(request.head, "ledger/llm/approvals").items()
        here.remote.commit(request.head, {path: text.replace(b"replicas: 3", b"replicas: 4")})
        here.host.merge(request)
        outcome = here.passes.run()
        assert here.placed == []
        assert any("does not say what was proposed" in str(problem) for problem in outcome.problems)


@every_host
def test_foreign_file_on_the_branch_of_a_proposal_is_told_and_taken_off(
    remote: Remote, tmp_path: Path, software: HostSoftware
) -> None:
    with fleet(remote, tmp_path, software) as here:
        request = here.propose()
        evil = "clusters/worker-1/evil/manifests/00.yaml"
        foreign = here.remote.commit(request.head, {evil: b"kind: ClusterRoleBinding\n"})
        here.tend()
        (comment,) = request.comments
        assert evil in comment
        assert foreign in comment
        assert request.state == "open"
        here.tend()
        assert len(request.comments) == 1
        here.host.merge(request)
        here.passes.run()
        assert here.placed == [("worker-2", 3)]
        assert evil not in here.remote.files("placements")


def _ready_to_merge(here: Fleet, how: str) -> Request:
    """Propose a burst; a fast-forward is possible until a pass has noted the address."""
    if how != "fast-forward":
        return here.propose()
    here.passes.run()
    here.passes.orders = numbered(here.desk.tend())
    return here.host.requests[-1]


MERGES = ("merge", "squash", "rebase", "fast-forward")


@pytest.mark.parametrize("how", MERGES)
def test_foreign_files_merged_before_anybody_looked_are_told_and_not_kept(
    remote: Remote, tmp_path: Path, how: str
) -> None:
    forged = "clusters/worker-3/vllm-0a1b2c3d/placement.yaml"
    odd = 'clusters/worker-2/a \\ "b"\n\x1b.yaml'
    with fleet(remote, tmp_path) as here:
        remote.commit("placements", {"README.md": b"ours\n", "notes/kept.md": b"theirs\n"})
        here.passes.run()
        request = _ready_to_merge(here, how)
        evil: dict[str, bytes | str | None] = {
            "clusters/worker-1/evil/manifests/00.yaml": b"kind: ClusterRoleBinding\n",
            "README.md": b"changed\n",
            "notes/kept.md": None,
            odd: b"x\n",
        }
        remote.commit(request.head, {**evil, forged: b"kind: WorkloadPlacement\n"})
        remote.commit(request.head, {"clusters/worker-1/evil/more.yaml": b"a: b\n"})
        here.host.merge(request, how)
        with capture_logs() as logged:
            here.passes.run()
        files = remote.files("placements")
        assert {*evil, forged, "clusters/worker-1/evil/more.yaml"} & {*files} == {"README.md", "notes/kept.md"}
        assert (files["README.md"], files["notes/kept.md"]) == (b"ours\n", b"theirs\n")
        assert here.placed == [("worker-2", 3)]
        (line,) = [entry["line"] for entry in logged if entry["event"] == "discarded"]
        assert "6 files merged with its approval that Overspill did not propose" in line
        assert [subject for subject in here.subjects if subject.startswith("discard(llm/vllm)")]
        tip = remote.tip("placements")
        here.passes.run()
        assert remote.tip("placements") == tip


def test_merge_that_brings_the_approval_of_another_proposal_approves_neither(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        other = "ledger/llm/approvals/other-0123456789ab.yaml"
        remote.commit(request.head, {other: b"kind: BurstApproval\n"})
        here.host.merge(request, "squash")
        here.passes.run()
        assert here.placed == []
        assert not [path for path in remote.files("placements") if "/approvals/" in path]


@pytest.mark.parametrize("how", MERGES)
def test_commits_that_people_push_beside_a_merge_stay(remote: Remote, tmp_path: Path, how: str) -> None:
    with fleet(remote, tmp_path) as here:
        request = _ready_to_merge(here, how)
        if how != "fast-forward":
            remote.commit("placements", {"before.md": b"1\n"})
        here.host.merge(request, how)
        if how != "fast-forward":
            remote.commit("placements", {"after.md": b"2\n"})
        here.passes.run()
        assert here.placed == [("worker-2", 3)]
        assert how == "fast-forward" or {"before.md", "after.md"} <= {*remote.files("placements")}
        assert not [subject for subject in here.subjects if subject.startswith("discard")]


def test_foreign_file_on_the_branch_is_told_where_the_burst_awaits_its_approval(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        foreign = remote.commit(request.head, {"clusters/worker-1/evil/00.yaml": b"a: b\n"})
        here.tend()
        (waits,) = [held.message for held in here.passes.look().plan.suppressed]
        said = f"commit {foreign[:12]} put clusters/worker-1/evil/00.yaml on its branch, which was taken off"
        assert said in waits
        assert here.proposal.foreign == said
        assert any(said in str(status.suppressed) for status in status_of(here.passes.look()).workloads)
        here.host.merge(request)
        here.passes.run()
        assert here.placed == [("worker-2", 3)]


def test_foreign_commit_below_that_of_a_proposal_is_told_and_taken_off(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        ((path, text),) = here.remote.files(request.head, "ledger/llm/approvals").items()
        here.remote.git("update-ref", f"refs/heads/{request.head}", "placements")
        below = here.remote.commit(request.head, {"clusters/worker-1/evil/manifests/00.yaml": b"a: b\n"})
        here.remote.commit(request.head, {path: text})
        here.tend()
        assert below in request.comments[0]
        assert not [path for path in here.remote.files(request.head) if "evil" in path]


def test_branch_as_it_was_made_is_left_alone_by_a_daemon_that_starts(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        head = here.host.head(request)
        here.remote.commit("placements", {"README.md": b"moved on\n"})
        here.start()
        here.tend()
        assert (here.host.head(request), request.comments) == (head, [])


def test_proposal_whose_pull_request_is_unreadable_holds_up_no_other(remote: Remote, tmp_path: Path) -> None:
    with two_proposals(remote, tmp_path) as here:
        here.host.answers = {"GET /pulls/1": (200, {"number": [], "state": 7, "html_url": None})}
        for request in here.host.requests:
            here.host.close(request)
        orders = here.desk.tend()
        assert [str(order.name) for order in orders] == ["second"]
        here.host.answers = {"GET /pulls/1": (502, {})}
        assert [str(order.name) for order in here.desk.tend()] == ["second"]


def test_bug_in_following_one_proposal_costs_that_one(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_proposals(remote, tmp_path) as here:
        for request in here.host.requests:
            here.host.close(request)
        first = min(here.branches)
        run = bulkhead._run

        def injected(seam: bulkhead.Seam, item: object, call: Callable[[], Any]) -> Any:
            if (seam, item) == (bulkhead.Seam.PROPOSAL, first):
                raise ZeroDivisionError("injected")
            return run(seam, item, call)

        monkeypatch.setattr(bulkhead, "_run", injected)
        assert len(here.desk.tend()) == 1


@contextmanager
def two_proposals(remote: Remote, path: Path) -> Iterator[Fleet]:
    """Propose the burst of one workload, and note a second proposal beside it on the output branch."""
    with fleet(remote, path) as here:
        here.propose()
        proposal = here.proposal
        workload = WorkloadId(proposal.workload.workspace, TemplateName("second"))
        second = replace(proposal, workload=workload, pull_request="")
        here.remote.commit("placements", {proposal_path(workload): write_proposal(second)})
        (order,) = here.desk.tend()
        assert order.ruling is not None
        second = replace(second, pull_request=order.ruling.pull_request)
        here.remote.commit("placements", {proposal_path(workload): write_proposal(second)})
        yield here


def test_merge_after_the_proposal_has_ended_places_nothing(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        _rule(here, plan_rejection)
        here.host.merge(request)
        here.passes.run()
        assert here.placed == []
        assert here.ledger_files == []
        assert here.subjects[0] == "proposal(llm/vllm): approved too late"


def _rule(here: Fleet, decide: Any) -> None:
    """Answer as the commands do."""

    def plan(inputs: Any) -> Any:
        proposal = find_proposal(inputs.ledger.proposals, "llm/vllm")
        return decide(inputs, proposal, by=ADA, reason="it is time")

    world = here.passes.world()
    carry_out(world, here.passes.memory, draft_from_git(world, here.passes.memory, plan, person=ADA))


def test_command_approves_in_the_name_of_the_person(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        _rule(here, plan_approval)
        assert here.subjects[0] == "approve(llm/vllm): 3 replicas on worker-2"
        assert here.remote.git("log", "-1", "--format=%an", "placements") == "Ada"
        with pytest.raises(InvalidInput, match="approved already"):
            _rule(here, plan_approval)
        here.passes.run()
        assert here.placed == [("worker-2", 3)]


def test_command_refuses_and_release_lets_it_be_proposed_again(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        _rule(here, plan_rejection)
        here.passes.run()
        assert here.why() == [Reason.HELD]
        assert "refused by Ada: it is time" in here.passes.look().plan.suppressed[0].message
        with pytest.raises(InvalidInput, match="nothing is proposed"):
            _rule(here, plan_approval)


def test_revert_of_an_approved_burst_brings_no_approval_back(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.host.merge(here.propose())
        here.passes.run()
        (placement,) = here.passes.placements()
        here.remote.commit("placements", {placement.path: None})
        here.passes.run()
        here.passes.advance(60)
        here.passes.run()
        assert here.placed == []
        assert here.ledger_files == [path for path in here.ledger_files if "/approvals/" not in path]


def test_burst_that_was_approved_ends_like_any_other(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.host.merge(here.propose())
        here.passes.run()
        here.passes.missing = 0
        here.passes.moment += timedelta(minutes=11)
        here.passes.run()
        assert here.placed == []
        assert here.subjects[0].startswith('Revert "burst(llm/vllm): 3 replicas on worker-2')


def test_rate_limit_ends_the_look_at_its_first_refusal(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        for stray in "ab":  # branches whose proposals are gone, each of which the host is asked about
            here.remote.git("branch", f"overspill/proposals/llm/{stray}-0123456789ab", "placements")
        here.host.answers = {"GET /pulls": (429, {})}
        here.host.headers = {"Retry-After": "600"}
        with pytest.raises(Transient, match="a rate limit") as caught:
            here.desk.tend()
        assert caught.value.pause == timedelta(minutes=10)
        assert len([call for call in here.host.calls if call.endswith("/pulls")]) == 1


def test_host_that_is_away_holds_up_no_pass(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        request = here.propose()
        here.host.down = True
        with pytest.raises(Transient, match="502"):
            here.desk.tend()
        here.passes.run()
        here.host.down = False
        here.host.merge(request)
        here.passes.run()
        assert here.placed == [("worker-2", 3)]


def test_two_daemons_make_one_branch_one_pull_request_and_one_placement(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        first, desk = here.passes, here.desk
        second = here.start()
        here.tend()
        desk.tend()
        assert len(here.host.requests) == 1
        here.host.merge(here.host.requests[0])
        first.run()
        second.run()
        assert here.placed == [("worker-2", 3)]
        assert sum(subject.startswith("burst(") for subject in here.subjects) == 1


def _answer(proposal: BurstProposal, verb: Verb, by: Identity) -> Order:
    """What a caller of the API says of a proposal."""
    workload = proposal.workload
    ruling = Ruling(workload=workload, proposal=proposal_id(proposal), reason="it is time", pull_request="")
    return Order(
        number=0,
        verb=verb,
        name=workload.name,
        workspace=workload.workspace,
        author=by,
        within=frozenset((workload.workspace,)),
        ruling=ruling,
    )


@pytest.mark.parametrize("second", [Verb.APPROVE, Verb.REJECT])
def test_second_answer_in_one_pass_is_refused_as_approved_already(remote: Remote, tmp_path: Path, second: Verb) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        answers = (_answer(here.proposal, Verb.APPROVE, ADA), _answer(here.proposal, second, GRACE))
        here.passes.orders = numbered(answers)
        outcome = here.passes.run_once()
        here.passes.orders = ()
        given = outcome.plan.answers
        assert given[1].denial is None
        assert (given[2].denial, "approved already" in given[2].message) == (Denial.INVALID, True)
        assert here.subjects[0] == "approve(llm/vllm): 3 replicas on worker-2"
        assert sum(subject.startswith("approve(") for subject in here.subjects) == 1
        here.passes.run()
        assert here.placed == [("worker-2", 3)]


def test_answer_after_a_refusal_in_one_pass_is_refused(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        answers = (_answer(here.proposal, Verb.REJECT, ADA), _answer(here.proposal, Verb.APPROVE, GRACE))
        here.passes.orders = numbered(answers)
        given = here.passes.run_once().plan.answers
        here.passes.orders = ()
        assert given[1].denial is None
        assert "has just ended" in given[2].message
        here.passes.run()
        assert here.placed == []


class Overtaken:
    """A repository that another daemon writes to between two calls: its `turn` comes once, before a chosen call."""

    def __init__(self, subject: Any, before: str, turn: Callable[[], object]) -> None:
        self._subject, self._before, self._turns = subject, before, [turn]

    def __getattr__(self, name: str) -> Any:
        if name == self._before and self._turns:
            self._turns.pop()()
        return getattr(self._subject, name)


def test_branch_that_another_daemon_made_since_the_list_is_not_taken_for_removed(
    remote: Remote, tmp_path: Path
) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        other = here.desk

        def propose() -> None:
            here.passes.orders = numbered(other.tend())
            here.passes.run_once()
            here.passes.orders = ()

        here.start()
        here.desk.repository = Overtaken(here.desk.repository, "fetch", propose)
        assert here.desk.tend() == ()
        assert here.proposal.pull_request
        assert [request.state for request in here.host.requests] == ["open"]
        assert here.branches == [here.host.requests[0].head]


def test_refusal_of_a_branch_that_another_daemon_made_since_the_list_is_found(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        other = here.desk

        def propose() -> None:
            other.tend()
            here.host.close(here.host.requests[0])

        here.start()
        here.desk.repository = Overtaken(here.desk.repository, "fetch", propose)
        (order,) = here.desk.tend()
        assert order.verb is Verb.REJECT
        assert [request.state for request in here.host.requests] == ["closed"]


# Death after a call is death before the next one.
@pytest.mark.parametrize("step", range(1, 13))
@pytest.mark.exhaustive(one_in=4)
def test_kill_between_any_two_steps_places_once_and_never_without_a_yes(
    remote: Remote, tmp_path: Path, step: int
) -> None:
    with fleet(remote, tmp_path) as here:
        fuse = Fuse(step)
        here.passes.run()
        desk = here.desk
        desk.repository = Mortal(desk.repository, fuse, calls=None)
        desk.pull_requests = Mortal(desk.pull_requests, fuse, calls=None)
        with suppress(Killed):
            here.tend()
            here.tend()
        fuse.left = 0
        here.passes = here.start()
        here.passes.run()
        here.tend()
        here.passes.run()
        assert here.placed == []
        assert len(here.host.requests) == 1
        assert here.branches == [here.host.requests[0].head]
        here.host.merge(here.host.requests[0])
        here.passes = here.start()
        here.passes.run()
        here.tend()
        assert here.placed == [("worker-2", 3)]
        assert (here.branches, here.ledger_files) == ([], [])
        assert sum(subject.startswith("burst(") for subject in here.subjects) == 1


@pytest.mark.parametrize("step", range(1, 14))
@pytest.mark.exhaustive(one_in=4)
def test_kill_of_a_pass_that_places_places_once(remote: Remote, tmp_path: Path, step: int) -> None:
    with fleet(remote, tmp_path) as here:
        here.host.merge(here.propose())
        here.passes.repository = Mortal(here.passes.repository, Fuse(step), calls=None)
        here.passes.restart()
        with suppress(Killed, OverspillError):
            here.passes.run_once()
        here.passes = here.start()
        here.passes.run()
        assert here.placed == [("worker-2", 3)]
        assert here.ledger_files == []
        assert sum(subject.startswith("burst(") for subject in here.subjects) == 1


def test_proposals_of_a_foreign_name_are_left_alone(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.remote.commit("overspilling", {"a": "b"})
        here.propose()
        assert here.remote.tip("overspilling") is not None


def test_address_of_a_pull_request_that_is_no_page_is_not_recorded(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        here.desk.pull_requests.available()
        here.host.url = "javascript:alert(1)//"
        assert here.desk.tend() == ()
        assert len(here.host.requests) == 1
        here.host.merge(here.host.requests[0])
        here.passes.run()
        assert here.placed == [("worker-2", 3)]


def test_wrong_token_costs_the_pull_request_alone(remote: Remote, tmp_path: Path) -> None:
    with fleet(remote, tmp_path) as here:
        here.passes.run()
        wrong = replace(Credentials(), username="overspill", password="wrong")
        here.desk.pull_requests.shut()
        here.desk.pull_requests = HostPullRequests(here.host.repository, wrong, timeout=5)
        assert here.desk.tend() == ()
        _rule(here, plan_approval)
        here.passes.run()
        assert here.placed == [("worker-2", 3)]
