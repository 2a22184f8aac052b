"""What the nodes of a cluster have: resources, devices, NodePools, and what of it is free."""
