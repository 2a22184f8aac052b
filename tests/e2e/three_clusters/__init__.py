"""Bursts from one cluster to two others, one with Flux and one with Argo CD."""
