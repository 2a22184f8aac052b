"""The first files of a fleet, made from what clusters hold: Cluster files, and templates of live workloads.

Called by `overspill init --from-kubeconfig` and `overspill lend`. The input are objects as API servers return them, the
output are documents and texts of files; what a person has to know of them comes along as sentences. Nothing here may
read a cluster or write a file.
"""
