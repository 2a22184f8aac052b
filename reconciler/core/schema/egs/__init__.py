"""The kinds and REST bodies of EGS as strict models, in every spelling that its documents use.

Called by `schema.registry` for files and by `api` for bodies. Existing EGS files load unchanged; a field without effect
here gets a warning at its line.
"""
