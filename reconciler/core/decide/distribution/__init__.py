"""How many replicas go to which cluster, once it is known what each can take and what each has.

Called by `core.sharing`, which makes targets of clusters. Pure arithmetic on `Target`: nothing here knows of capacity,
demand or time. Never more than fits, never more than was wanted, and what a cluster keeps it keeps.

Each strategy is a module with the functions of `Strategy`; what all of them have in common, minimums and bounds, is in
`dividing` and `bounds`.
"""

from reconciler.core.decide.distribution.cluster_bounds import choose
from reconciler.core.decide.distribution.divide import Division, give_back, returns, share_out
from reconciler.core.decide.distribution.target import ClusterShare

__all__ = ["ClusterShare", "Division", "choose", "give_back", "returns", "share_out"]
