"""Pure functions from values to values: read, observe, decide, write, explain.

Called by `daemon`, `api` and `cli`. Nothing in here reads a clock, an environment variable, a file or a socket, starts
a process, draws a random number or logs: time and bytes are arguments, and everything worth telling is returned.

The rooms, each of which may use those below it (import-linter enforces the order):

- `explain`: why a workload, a request or a GPR is where it is
- `commits`: a plan as files and commit messages, and history read back from the log
- `decide`: what changes now, one step after the other
- `fleet`: the files of the source branch as the fleet that is in force
- `observe`: what clusters, signals and engines report, as numbers
- `ledger`: the records of the output branch, both ways, and the life of a placement
- `engines`: the files that Argo CD, Flux or plain directories want
- `spread`: what a WorkloadSpread subset changes in pods
- `safety`: which objects and commands may be deployed at all
- `capacity`: whether pods fit on nodes
- `schema`: bytes as typed files, with the line of every problem
- `signals`: what says that a workload is missing replicas: schedules, Prometheus, autoscalers, Kueue
- `workloads`: kinds of workloads, the pods that their objects make, and the rules of pods
- `expressions`: Jinja expressions of templates, in a sandbox
"""
