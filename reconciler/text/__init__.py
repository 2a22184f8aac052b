"""Sentences for people: counts and lists in words, findings with their place, moments, near spellings, redaction.

Called by every package but `model`. Nothing in here decides what to say, only how it is said.
"""
