"""The steps of a pass, a module each: manual changes, ends, scale-down, moves, and new placements.

Called by `decide.py` in the order of commits, and by the `orders` that ask for one change. A step reads
the PassInput and the WorkingPlan, and changes the latter by `change` and `suppress` alone. Steps that place replicas
yield turns, which `turns` serves by priority. No step may count capacity itself or write a file.
"""
