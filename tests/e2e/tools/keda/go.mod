module overspill.dev/e2e/keda

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require github.com/kedacore/keda/v2 v2.21.0
