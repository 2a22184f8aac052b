"""Proposals of bursts at the host of the fleet repository: their branches and pull requests."""
