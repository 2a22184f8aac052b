"""Sequencing: which port is asked when, and what is kept from one pass to the next.

Called by `app` and `cli`. Nothing in here decides anything (that is `core`) and nothing in here knows how git, a
cluster or a clock is reached (those are `adapters`, behind `ports`).
"""
