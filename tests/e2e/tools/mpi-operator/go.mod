module overspill.dev/e2e/mpi-operator

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require github.com/kubeflow/mpi-operator v0.8.0
