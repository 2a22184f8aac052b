"""Wires the program: the package that knows the adapter of each port. Commands call it with `Settings`.

`world` opens what the settings name, `commands` what a command needs of that, `daemon` the loop, `http_server` what
answers beside it, `proposals` the way to pull requests, and `receivers` the ways to the receivers of Notifications.
Commands build no adapter of their own, but for clocks and the webhooks of a single pass.
"""
