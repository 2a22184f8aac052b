"""Who may call the API: the access file, and an OpenID Connect issuer."""
