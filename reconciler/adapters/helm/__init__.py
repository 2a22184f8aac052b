"""Helm: charts rendered by its program, and its output parsed. No other package runs it."""
