"""What a first burst of this fleet needs, as checks, each with the command that mends it.

Called by `daemon.inspection`, for `overspill doctor`. `fleet_checks` lists the checks of each API server for a
`Desired`; an adapter gets the answers to their questions, and each check makes one `CheckResult` of them. `git` and
`webhooks` do so for what is tried beside API servers. Nothing here asks anybody, and a check takes nothing for granted
that was not answered: what could not be looked at is unknown, and only what was seen to lack is missing. No result
quotes the value of a Secret, nor a credential.
"""
