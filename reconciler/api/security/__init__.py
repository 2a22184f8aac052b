"""Access to the routes: authentication, rate limits, signatures of webhooks, TLS, bounds on connections.

`app` builds all of it from the settings; `callers` stands before the routes of the management API. The package does not
know the purpose of a route. Roles and claims are judged in `reconciler.access`.
"""
