"""What placements cost: prices over time, GPU-hours and dollars, and what is left of budgets.

Called by `decide` for budgets and the score Price, by the daemon that reads both branches, and by `overspill cost`.
Amounts follow from the two branches and a moment alone: records of placements, prices of Cluster files.
"""
