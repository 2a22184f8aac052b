"""What placements cost, at the prices that held, and the budgets that bound it."""
