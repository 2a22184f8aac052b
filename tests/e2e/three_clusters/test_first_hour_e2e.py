"""The first hour: from a kubeconfig in an empty home to the plan of a first burst, and on to the burst itself.

Nothing is written by hand: each file comes from a command, and each command from README, from docs/tutorial/real-fleet
or from the screen before it. What README and the screens promise is held: four commands and five minutes to the plan,
fifteen to the burst, one question, and at most eight concepts to learn. With ``-s`` it prints a line for each step,
with its seconds, and their sums.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.docs.concept_terms import MOST, concepts
from tests.e2e.conftest import CHECKOUT, Fleet
from tests.e2e.test_lend_e2e import NAMESPACE
from tests.e2e.three_clusters.clusters import ARGO_CD, FLUX, HOME, ThreeClusters
from tests.e2e.three_clusters.test_real_fleet_e2e import AT_HOME, Person, running, running_full, wait

MISSING = 3
REPOSITORY = "https://git.example.com/acme/fleet.git"
COMMANDS = 4
UNTIL_PLAN, UNTIL_BURST = timedelta(minutes=5), timedelta(minutes=15)
"""What the project promises: deadlines, several times what the walk takes on a slow machine."""
NOBODYS = "\x04"
"""The end of what a person types: a question more than there are answers ends the command."""


class Walk:
    """The steps that a person takes, and how long each took."""

    def __init__(self, person: Person) -> None:
        """Begin with none."""
        self._person = person
        self.steps: list[tuple[str, float]] = []
        self.questions = 0

    def types(self, command: str, *answers: str) -> str:
        """Type a command, answer what it asks, and return what it prints."""
        began = time.monotonic()
        typed = "".join(f"{answer}\n" for answer in answers) + NOBODYS
        printed = self._person.types(f"{command} 2>&1", answers=typed)
        self.took(command, began)
        self.questions += len(answers)
        return printed

    def took(self, step: str, began: float) -> None:
        """Print a step that began at a moment of the monotonic clock."""
        self.steps.append((step, time.monotonic() - began))
        sys.stdout.write(f"{self.steps[-1][1]:7.1f} s  {step}\n")

    def reaches(self, what: str, within: timedelta) -> None:
        """Print the sum of the steps so far, which may not exceed a deadline."""
        seconds = sum(seconds for _, seconds in self.steps)
        sys.stdout.write(f"{seconds:7.1f} s  until {what}\n")
        assert seconds <= within.total_seconds(), self.steps


@pytest.fixture
def person(three_clusters: ThreeClusters, fleet: Fleet) -> Iterator[Person]:
    """Stand before clusters that know nothing of Overspill, in a home with git's login and a kubeconfig alone."""
    with running_full(three_clusters):
        three_clusters.left_to_a_person()
        yield Person(three_clusters, fleet)


def test_from_a_kubeconfig_to_a_plan_and_to_a_burst_that_flux_applied_with_no_line_by_hand(person: Person) -> None:
    walk, target = Walk(person), person.three.clusters[FLUX]
    clone, init, lend, check = _commands_of_the_readme()
    cloned, described, lent = walk.types(clone), walk.types(init, HOME), walk.types(lend)
    (chosen,) = re.findall(rf"^Place +llm/vllm +\S+ +({FLUX}|{ARGO_CD}) ", lent, re.MULTILINE)
    checked = walk.types(check)
    assert "0 errors, 0 warnings" in checked
    assert len(walk.steps) == COMMANDS
    walk.reaches("the first plan", UNTIL_PLAN)
    named = concepts(f"{_section_of_the_readme()}\n{cloned}\n{described}\n{lent}\n{checked}")
    assert len(named) <= MOST, named
    walk.types(
        "git -C ours add --all && git -C ours commit --quiet --message 'Describe the fleet' && "
        "git -C ours push --quiet origin HEAD:main"
    )
    walk.types(
        f"export OVERSPILL_REPO={REPOSITORY} OVERSPILL_GIT_USERNAME=overspill"
        ' OVERSPILL_GIT_PASSWORD_FILE="$PWD/git-password"'
    )
    doctor = walk.types("overspill doctor --kubeconfig ~/.kube/config || true")
    assert re.search(r"^ok +files: without errors: 3 clusters, 1 workspace, 1 template", doctor, re.MULTILINE), doctor
    (command,) = re.findall(r"`(overspill plan [^`]+)`", " ".join(lent.split()))
    planned = walk.types(command)
    assert re.search(rf"^Place +llm/vllm +\S+ +{chosen} ", planned, re.MULTILINE), planned
    walk.reaches("the plan of what is pushed", UNTIL_PLAN)

    (many,) = re.findall(r"Wrote (\d+) files to ours\.$", described, re.MULTILINE)
    files = person.types("git -C ours ls-files").split()
    assert len(files) == int(many) + len(re.findall("^Wrote ours/", lent, re.MULTILINE)), files
    asked = re.findall(r"^.*\((?:\S+, )+\S+\): ", described, re.MULTILINE)
    assert (len(asked), walk.questions) == (1, 1), described

    contexts = " ".join(f"--context {name}" for name in (HOME, FLUX, ARGO_CD))
    walk.types(f"overspill grant --fleet ours {contexts} --kubeconfig-out kubeconfig --yes")
    walk.types('export OVERSPILL_KUBECONFIG="$PWD/kubeconfig"')
    walk.types(
        f"kubectl --context {FLUX} create namespace {NAMESPACE} && kubectl --context {FLUX} -n overspill create secret"
        ' generic placements-read --from-literal=username=engines --from-literal=password="$(cat git-read-password)"'
    )
    walk.types(f"overspill bootstrap flux --cluster {FLUX} --apply --context {FLUX} --yes")
    walk.types(f"kubectl --context {HOME} -n {NAMESPACE} scale deployment/vllm --replicas={AT_HOME + MISSING}")
    began = time.monotonic()
    with person.running("overspill run") as log:
        wait(lambda: running(target) >= MISSING, lambda: f"{log()}\n{person.three.flux.last_words()}")
        walk.took("overspill run, until Flux has applied the burst and its pods run", began)
    walk.reaches("the burst", UNTIL_BURST)
    sys.stdout.write(
        f"{walk.questions} question, {len(files)} files by commands, 0 files and 0 lines by hand,"
        f" {len(named)} concepts: {', '.join(sorted(named))}\n"
    )
    assert not person.types("git -C ours status --porcelain")


def _section_of_the_readme() -> str:
    """Return what README says about the way from a kubeconfig to a plan."""
    return (CHECKOUT / "README.md").read_text().partition("\n## A first plan\n")[2].partition("\nBy hand, ")[0]


def _commands_of_the_readme() -> list[str]:
    """Return what README's first plan has a person type, without its comments."""
    (block,) = re.findall(r"^```sh clusters\n(.*?)^```$", _section_of_the_readme(), re.MULTILINE | re.DOTALL)
    return [line.partition("#")[0].strip() for line in block.splitlines()]
