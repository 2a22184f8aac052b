module overspill.dev/e2e/kruise

go 1.25.0

// Read for the kinds that it publishes; nothing of it is built.
require github.com/openkruise/kruise v1.8.3
