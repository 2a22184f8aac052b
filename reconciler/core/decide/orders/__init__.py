"""Changes that a person or an API caller orders: end, extend, request and rebalance, as plans like any other.

Called by `decide.py` for the orders of API callers, and by the commands that ask for one change. An order is judged by
the same rules as a step, and uses the steps below it. No order may count capacity itself or write a file.
"""
