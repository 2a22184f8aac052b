"""A long run: hours of demand and faults in one, over three real clusters, and whether git explains all that stands.

``make long-run`` plays it. `scale` says how much, `demand` and `faults` what happens when, both from one seed. `stage`
has the clusters, engines and git server, `daemon` the process that is tried, `clock` its clock. `journal` holds the
moments of each burst, which `watches` observe from outside; `verdict` judges them, `report` prints. Nothing in here
asks the daemon how it is doing: what it has done is read from git and from the clusters.
"""
