module overspill.dev/e2e/kuberay

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require github.com/ray-project/kuberay/ray-operator v1.5.0
