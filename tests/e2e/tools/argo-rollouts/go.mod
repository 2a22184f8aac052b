module overspill.dev/e2e/argo-rollouts

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require github.com/argoproj/argo-rollouts v1.8.5
