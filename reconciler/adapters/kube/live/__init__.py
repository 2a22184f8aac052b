"""Single objects of a cluster as they are now, read with the login of a person."""
