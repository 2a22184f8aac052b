"""The steps of a pass, a module each: what ends, scales down, moves, begins, and what people and callers ask for.

Called by `decide.py` in the order of commits, and by commands that ask for one change (steer, rebalance). A step reads
the PassInput and the WorkingPlan, and changes the latter by `change` and `suppress` alone. Steps that place replicas
yield turns, which `queue` serves by priority. No step may count capacity itself or write a file.
"""
