"""Jinja expressions in the string values of a template: parsed, checked and rendered in a sandbox with a budget.

Called by `fleet` to check templates and by `commits` to render them. An expression sees the documented context alone,
and every construct that multiplies work pays for it first. No expression reaches Python, a file or the network.
"""
