module overspill.dev/e2e/trainer

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require github.com/kubeflow/trainer/v2 v2.0.0
