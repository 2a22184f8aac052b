"""``python -m reconciler``, where no script was installed."""

from __future__ import annotations

from reconciler.cli import main

main()
