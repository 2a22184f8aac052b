"""Rights of callers of the API: roles in workspaces, tokens, the claims of OpenID Connect tokens, and rate limits.

Called by `core.schema.access`, which reads the access file, by the adapters that check signatures, and by
`api.security`. Pure values and functions: the time is an argument, and no key or file is read in here.
"""
