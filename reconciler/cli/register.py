"""All commands: their sections, names and one-line help, and the modules that declare them.

A command's module is imported when the command is run or completed, or when its own help is shown. The overview of all
commands needs this table alone. A test compares each line with the command's own help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click

SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Fleet repository": {
        "init": ("files", "Begin a fleet repository in DIRECTORY."),
        "lend": ("lend", "Write the files with which a live workload may burst."),
        "check": ("files", "Check every file of a fleet repository as the daemon would."),
        "schema": ("files", "Print the JSON Schema of a kind, for editors and other tools."),
    },
    "Passes": {
        "plan": ("plan", "Show what `run` would commit, and commit nothing."),
        "once": ("passes", "Run one pass: observe, decide, commit and push."),
        "run": ("passes", "Run the daemon: watch, and commit each change."),
        "sweep": ("passes", "Revert expired placements, and nothing else."),
        "restore": ("restore", "Push back what the output branch has lost, or give it up."),
    },
    "State": {
        "status": ("state", "Show every workload's demand and every placement."),
        "explain": ("state", "Explain one workload: filter, fit and rank of each cluster."),
        "watch": ("watch", "Watch clusters, workloads and commits on one screen."),
        "history": ("state", "List past and present placements with their reasons."),
        "cost": ("state", "Add up the GPU-hours and the money of placements."),
        "gprs": ("gprs", "List GPRs: GPUs in use elsewhere, and workloads that wait."),
        "wait-time": ("gprs", "Estimate when GPUs can be had on each cluster."),
        "inventory": ("gprs", "List the GPU nodes with their GPUs, and the free ones."),
    },
    "Placements": {
        "placements": ("placements", "Ask for placements by name, and follow them."),
        "revert": ("steer", "End placements now."),
        "release": ("steer", "End the holds and cool-downs of a workload."),
        "extend": ("steer", "Let a placement run longer, or end it earlier."),
        "approve": ("approve", "Approve a burst that is proposed."),
        "reject": ("approve", "Refuse a burst that is proposed, and hold its workload."),
        "confirm": ("steer", "Confirm a mass deletion, and end its placements."),
        "rebalance": ("steer", "Distribute a workload's bursts over the clusters again."),
    },
    "Notifications": {
        "notify": ("notify", "List receivers of Notifications, and try one."),
    },
    "Lab": {
        "lab": ("lab", "Try a policy in a simulated world before it is merged."),
    },
    "Setup": {
        "doctor": ("doctor", "Check what a first burst needs, and how to mend what lacks."),
        "grant": ("grant", "Give the daemon its account, rights and logins in clusters."),
        "bootstrap": ("bootstrap", "Print the objects that an admin applies once for an engine."),
        "token": ("token", "Make a token for the API."),
        "support-bundle": ("support_bundle", "Collect what a maintainer needs, without secrets."),
        "completion": ("completion", "Print the completion script of a shell."),
        "demo": ("demo", "Play a GPU shortage on this machine, from burst to return."),
    },
}
"""By section and name: the module in `commands`, and the help. The function has the command's name."""

HELP = {name: text for section in SECTIONS.values() for name, (_, text) in section.items()}


class Register(MutableMapping[str, click.Command]):
    """The commands by name; a command is imported when it is looked up."""

    def __init__(self) -> None:
        """List the names; nothing is imported."""
        self._entries: dict[str, click.Command | str] = {
            name: module for section in SECTIONS.values() for name, (module, _) in section.items()
        }

    def __getitem__(self, name: str) -> click.Command:
        """Import a command. Raises KeyError for a name that no command has."""
        entry = self._entries[name]
        if isinstance(entry, str):
            module = import_module(f"reconciler.cli.commands.{entry}")
            command: click.Command = getattr(module, name.replace("-", "_"))
            self._entries[name] = entry = command
        return entry

    def __setitem__(self, name: str, command: click.Command) -> None:
        """Add a command that is imported already."""
        self._entries[name] = command

    def __delitem__(self, name: str) -> None:
        """Forget a command."""
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names in the order of the overview."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Count the commands."""
        return len(self._entries)
