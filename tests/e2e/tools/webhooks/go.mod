module overspill.dev/e2e/webhooks

go 1.26.0
