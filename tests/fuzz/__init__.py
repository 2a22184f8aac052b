"""Fuzzing: files, records, recordings, objects, answers of any host or server and HTTP bodies that nobody foresaw.

``python -m tests.fuzz --cpu-minutes 30`` (``make fuzz``) goes on for that much CPU time and prints what it tried and
each exception that was not raised on purpose, with the input that led to it. Whatever a bulkhead has contained counts
as well. A slice of it runs with the tests.
"""
