"""What the components of a cluster say of pods that wait, each by its own grammar, as one `WaitReason`.

A module is a source: its table of sayings names the component, the version and the file that a saying is from. Only
these tables know the words of others; whoever reads an object asks them, and decides by the class alone. A saying that
no table has counts as what it was said of: a scheduler's as a lack of room, an API server's as an error.
"""
