"""Warnings about files that are valid and cannot have the effect that their author expects.

Called while files are read and assembled. A warning keeps no file out of force; deciding judges each cluster again,
with what is observed there.
"""
