"""Whether a running daemon answers as its OpenAPI says: `make contract`."""
