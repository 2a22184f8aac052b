"""Tells receivers of events: chats and mailboxes, webhooks, Kubernetes and the git host, each at its own pace.

`app` makes the couriers, and the loop feeds them after each pass. No pass waits for a receiver. What is told of
commits is derived from the output branch and two refs (docs/decisions/0029-telling-is-derived-from-git.md).
"""
