"""Text in sentences: counts and lists in words, findings with locations, timestamps, suggestions, redaction.

Called by every package but `model`. Nothing in here decides what to report, only its form.
"""
