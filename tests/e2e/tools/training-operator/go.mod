module overspill.dev/e2e/training-operator

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require github.com/kubeflow/training-operator v1.9.3
