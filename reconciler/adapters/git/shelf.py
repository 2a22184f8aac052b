"""Reading files of the mirror beside the thread that keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock

from reconciler.adapters.git.objects import Missing, ObjectReader, checked_id
from reconciler.adapters.git.run import Runner
from reconciler.model.ids import BlobId


class MirrorFiles:
    """Blobs of the mirror by id, through a reading process of its own; from any thread, one at a time."""

    def __init__(self, runner: Runner) -> None:
        """Start nothing yet."""
        self._reader = ObjectReader(runner)
        self._lock = Lock()
        self._closed = False

    def read(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Read blobs; those that are not in the mirror are left out, and all of them once it is closed."""
        wanted = list(dict.fromkeys(blobs))
        found: dict[BlobId, bytes] = {}
        with self._lock:
            for blob in () if self._closed else wanted:
                try:
                    (found[blob],) = self._reader.read([checked_id(blob)])
                except Missing:
                    # A mirror that was made anew lies at the same place: the next process sees it.
                    self._reader.close()
        return found

    def close(self) -> None:
        """End the reading process for good."""
        with self._lock:
            self._closed = True
            self._reader.close()
