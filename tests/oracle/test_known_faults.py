"""Faults of deciding that random fleets, or people, have found. Whoever mends one takes its mark off."""

from __future__ import annotations

from tests.oracle import faults


def test_run_with_fixed_number_of_replicas_begins_once() -> None:
    assert faults.run_with_fixed_number_begins_once()


def test_job_is_not_begun_again_after_its_time() -> None:
    assert faults.job_is_not_begun_again()


def test_training_job_is_not_begun_again_after_its_time() -> None:
    assert faults.training_job_is_not_begun_again()


def test_run_with_fixed_number_is_not_begun_again_after_its_time() -> None:
    assert faults.copy_of_run_is_not_begun_again()


def test_burst_leaves_where_a_new_required_label_is_missing() -> None:
    assert faults.new_required_label_is_followed()


def test_burst_leaves_a_cluster_that_loses_a_required_label() -> None:
    assert faults.changed_cluster_label_is_followed()


def test_burst_leaves_a_cluster_with_a_new_noexecute_taint() -> None:
    assert faults.evicting_taint_is_followed()


def test_burst_leaves_a_taint_that_is_not_tolerated_any_more() -> None:
    assert faults.lost_toleration_is_followed()


def test_burst_leaves_a_cluster_without_the_label_to_spread_over() -> None:
    assert faults.lost_spread_label_is_followed()


def test_replicas_of_a_subset_leave_where_its_term_does_not_match() -> None:
    assert faults.lost_subset_term_is_followed()


def test_forbidden_burst_is_not_renewed() -> None:
    assert faults.forbidden_burst_is_not_renewed()


def test_two_groups_outlive_a_drain() -> None:
    assert faults.two_groups_outlive_a_drain()


def test_two_clusters_outlive_a_drain() -> None:
    assert faults.two_clusters_outlive_a_drain()


def test_two_groups_outlive_a_loss() -> None:
    assert faults.two_groups_outlive_a_loss()


def test_shares_outlive_a_drain() -> None:
    assert faults.shares_outlive_a_drain()


def test_adaptive_spread_keeps_to_the_budget_of_moves() -> None:
    assert faults.adaptive_spread_keeps_to_the_budget_of_moves()


def test_what_has_no_node_is_given_back_first() -> None:
    assert faults.what_has_no_node_is_given_back_first()


def test_decision_writes_nothing_into_its_input() -> None:
    assert faults.decision_writes_nothing_into_its_input()


def test_set_within_the_limit_of_a_cluster_is_explained() -> None:
    assert faults.set_within_the_limit_of_a_cluster_is_explained()


def test_set_within_the_limit_of_its_policy_is_explained() -> None:
    assert faults.set_within_the_limit_of_its_policy_is_explained()


def test_cluster_that_takes_a_part_is_not_refused_for_what_others_take() -> None:
    assert faults.cluster_that_takes_a_part_is_explained()


def test_maximum_in_percent_follows_what_a_drain_reverts() -> None:
    assert faults.maximum_in_percent_follows_a_drain()


def test_bounded_division_beside_others_is_explained() -> None:
    assert faults.bounded_division_beside_others_is_explained()


def test_unseen_cluster_counts_for_a_maximum_of_clusters() -> None:
    assert faults.unseen_cluster_counts_for_a_maximum()
