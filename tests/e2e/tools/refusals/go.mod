module overspill.dev/e2e/refusals

go 1.25.0
