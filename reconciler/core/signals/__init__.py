"""The signals: each says that a workload is missing replicas, and together they make its demand.

Each kind that a BurstPolicy can name is one module (`schedule`, `prometheus`, `forecast`) with a frozen dataclass that
satisfies `model.signal.Signal`; `core.schema.signals` reads it from YAML and registers it. `past_demand` is what
signals look back on. `cluster` lists the kinds that clusters report. `freshness` tells which signals count now, and
`merge` adds them up.

Called by `core.observe.demand`, which knows no kind of a policy's signals by name, and by the adapters that ask the
services outside. Nothing here asks anybody: answers come in as values.
"""
