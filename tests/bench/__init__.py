"""The figures that the project promises, each as a ratio to a floor measured in the same run.

``python -m tests.bench`` prints one line a figure, ``name value bound``, and exits with 1 when a bound is missed.
"""
