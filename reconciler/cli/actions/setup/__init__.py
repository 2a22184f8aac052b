"""The actions by which a fleet begins: its repository and templates, what engines need, what is amiss, its tokens."""
