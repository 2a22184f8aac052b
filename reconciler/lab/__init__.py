"""The lab: the production pass in a simulated world, to measure a policy before it is merged.

A scenario says which demand, clusters, prices and outages there are. `simulation` plays it second by second with a
controller: the real pass (`overspill_controller`), or a simpler rule to compare it with (`rules`). `accounts` keeps
what was served, what it cost and what each replica-second that was not served was lost to; `optimum` works out the
least that could have been lost. Nothing here is imported by the daemon.
"""
