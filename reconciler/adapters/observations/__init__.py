"""Sources of observations without an API server, and views joined into one."""
