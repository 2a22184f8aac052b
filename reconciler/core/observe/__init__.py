"""Observations of clusters, engines and signals, as the values that a decision starts from.

`demand` measures the replicas that each workload is missing, `rollouts` tells which placements are healthy, and
`kubernetes` reads the objects of a cluster. Called by `daemon.reconcile`, by the adapters that watch or receive
observations, and by `decide`. Nothing is decided here, and nothing is guessed: a cluster that was not seen recently, or
a signal without an answer, is a value of its own and never counts as zero.
"""
