"""The actions by which a fleet begins: its repository, its templates, its tokens."""
