"""Watches that keep changes from us."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.adapters.kube.stream import Stream
from reconciler.adapters.kube.timing import WatchTiming


def muted(streams: Iterable[Stream], pace: WatchTiming) -> str:
    """Say which watches have kept changes from us; empty where none has."""
    names = ", ".join(sorted(stream.resource.full_name for stream in streams if stream.mute))
    sentence = (
        f"watches do not tell what changes, of {names} (does a proxy hold it back?); listed every {pace.silence:g} s"
    )
    return sentence if names else ""
