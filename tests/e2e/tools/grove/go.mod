module overspill.dev/e2e/grove

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require github.com/NVIDIA/grove/operator/api v0.1.0-alpha.8
