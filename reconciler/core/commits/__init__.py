"""commits."""
