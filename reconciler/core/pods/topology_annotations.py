"""Annotations of pod templates by which Kueue gives pods domains of a topology.

https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/
"""

REQUIRED = "kueue.x-k8s.io/podset-required-topology"
"""The pods of a template share a domain of this level."""
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
"""The same, where one has room for them."""
UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
"""The pods go to any domains."""
SLICE = "kueue.x-k8s.io/podset-slice-required-topology"
"""The pods of each slice of a template share a domain of this level."""
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
"""The pods of a slice."""
SLICE_LEVELS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
"""Several levels of domains for slices of slices."""
GROUP = "kueue.x-k8s.io/podset-group-name"
"""Templates with one value go to one domain together."""
