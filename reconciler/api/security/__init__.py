"""Who and what gets to the routes: authentication, rate limits, signatures of webhooks, TLS, bounds on connections.

`entry` builds it all from the settings, for `app`; `callers` stands before the routes of the management API. Nothing in
here knows what a route does. Roles and claims themselves are judged in `reconciler.access`.
"""
