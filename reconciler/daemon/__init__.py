"""Runs passes: when (`loop`), on which orders (`pass_runner`), and in which steps (`reconcile`).

A pass reads both branches (`source`, `branch`) and the clusters, has `core` decide, renders commits, pushes them
(`publish`) and then hands its events to the sinks of `ports.EventSink`; `steer` makes passes that a person asks for,
`snapshot` and `status` are what readers see. Called by `app`, `api` and the command line. The package sequences: it
decides nothing (that is `core`), reaches git, clusters and clocks by `ports` alone, and may lose all its memory at any
moment, since the only state that counts is in git.
"""
