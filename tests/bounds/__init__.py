"""Measures what each bound of `reconciler.model.bounds` costs: at the bound, and beyond it.

Each bound has an experiment: it gives the code that reads the input one at the bound, then one beyond it, and holds
that the latter is given up as the table says. `python -m tests.bounds` runs them, each in a process of its own, and
writes `measured.json`, from which `make reference` writes the columns of docs/reference/bounds.md.
"""
