module overspill.dev/e2e/mcs-api

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require sigs.k8s.io/mcs-api v0.5.2
