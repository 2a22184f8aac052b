module overspill.dev/e2e/kserve

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require github.com/kserve/kserve v0.20.0
