"""Who is told what, and in which words and forms: from commits of the output branch to messages and requests.

The couriers of `adapters.notification` call it. Nothing here sends, waits or remembers.
"""
