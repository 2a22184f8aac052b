"""Whose word on priority and eviction counts: of the request, else its GPRTemplate, the binding, or the policy."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.core.decide.candidates.gpr_terms import priority, priority_band, terms
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import Desired
from tests.builders.gprs import TRAIN, binding, gpr_template, record, request
from tests.builders.inputs import VLLM, desired, inputs, ledger, ordering, template

ON_2, ON_3 = ClusterName("worker-2"), ClusterName("worker-3")


def fleet(
    *,
    named: tuple[str, ...] = (),
    defaults: Mapping[str, str] | None = None,
    listed: tuple[str, ...] = (),
    auto: bool = True,
) -> Desired:
    """Describe vllm with a policy of priority 7 and two GPRTemplates for worker-2, one for worker-3."""
    made = [gpr_template("gold", priority=250), gpr_template("plain", priority=40, evictable=True)]
    made.append(gpr_template("far", "worker-3", priority=90))
    wanted = desired(
        ordering("worker-2", "worker-3", priority=7),
        gpr_templates={one.name: one for one in made},
        bindings=binding(defaults, *listed, auto=auto) if defaults else {},
    )
    return replace(wanted, templates={VLLM: replace(template(), gpr_templates=named)})


@pytest.mark.parametrize(
    ("wanted", "on_2", "on_3", "urgency"),
    [
        (fleet(), 7, 7, 7),
        (fleet(named=("gold",)), 250, 7, 250),
        (fleet(named=("nobody's", "gold")), 250, 7, 250),
        (fleet(defaults={"worker-2": "plain", "worker-3": "far"}), 40, 90, 90),
        (fleet(named=("gold",), defaults={"worker-2": "plain", "worker-3": "far"}, listed=("gold",)), 250, 90, 250),
        (fleet(named=("gold",), defaults={"worker-2": "plain", "worker-3": "far"}), 40, 90, 90),
        (fleet(named=("gold", "far"), defaults={"worker-2": "plain"}, listed=("far",)), 40, 7, 40),
        (fleet(defaults={"worker-2": "plain"}, auto=False), 7, 7, 7),
        (fleet(named=("gold",), defaults={"worker-2": "plain"}, listed=("gold",), auto=False), 250, 7, 250),
        (fleet(defaults={"worker-2": "far"}), 7, 7, 7),
    ],
    ids=[
        "the policy says it", "the template names one", "what nobody describes is passed over", "the binding's default",
        "what is named and listed goes before the default", "what the binding does not list is passed over",
        "on a cluster that the binding does not have nothing holds", "no default without auto-GPR",
        "what is listed holds without auto-GPR", "a default of another cluster is none",
    ],
)  # fmt: skip # a table, a row a line
def test_terms_of_a_burst(wanted: Desired, on_2: int, on_3: int, urgency: int) -> None:
    seen = inputs(wanted=wanted)
    assert terms(VLLM, ON_2, seen).priority == on_2
    assert terms(VLLM, ON_3, seen).priority == on_3
    assert priority(VLLM, seen) == urgency


def asked(**fields: object) -> PassInput:
    known = record(request(template="vllm", **fields))
    return inputs(wanted=fleet(named=("gold",)), there=ledger(requests={TRAIN: known}))


def test_a_request_that_says_what_it_needs_has_its_own_terms() -> None:
    seen = asked(ask=GpuAsk(gpus=2), terms=GprTerms(priority=120))
    assert terms(TRAIN, ON_2, seen).priority == priority(TRAIN, seen) == 120


def test_a_request_that_says_nothing_of_gpus_has_those_of_its_template() -> None:
    seen = asked()
    seen = replace(seen, desired=replace(seen.desired, policies={**seen.desired.policies, TRAIN: ordering("worker-2")}))
    assert terms(TRAIN, ON_2, seen).priority == 250
    assert terms(TRAIN, ON_3, seen).priority == 101


def test_a_request_of_no_template_has_the_defaults_of_egs() -> None:
    seen = inputs(there=ledger(requests={TRAIN: record()}))
    assert terms(TRAIN, ON_2, seen) == GprTerms(priority=101)
    assert priority(TRAIN, seen) == 101


def test_a_workload_that_nobody_describes_comes_last() -> None:
    stranger = VLLM._replace(workspace=WorkspaceName("other"))
    assert priority(stranger, inputs()) == 0


def test_bands_end_at_100_200_and_300() -> None:
    assert [priority_band(number) for number in (0, 1, 100, 101, 200, 201, 300)] == [
        "low", "low", "low", "medium", "medium", "high", "high"
    ]  # fmt: skip # a list of words, filled line by line
