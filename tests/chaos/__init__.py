"""Disturbances that take too long for every run of the tests: `make chaos`, or `python -m tests.chaos NAME [NUMBER]`.

Each module disturbs a daemon in one way, many times, and then demands that the branch is whole: history is only added
to, nothing is placed twice or lost, `git fsck --strict` is content, and what is due has been done.
"""
