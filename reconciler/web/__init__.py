"""The page of a daemon at ``/``: what an on-call person asks, and the orders that they may give.

Called by `app` alone, which serves it beside the API. Each view is a pure function from the newest snapshot, and from
what `AnswerDesk` reads from git, to a frozen value that a template shows; nothing is decided or computed in a template.
The package uses the API's ways in (tokens, roles, redaction, orders), writes nothing itself, and needs no script: a
script only keeps an open page up to date.
"""
