"""Authentication, rate limits, TLS and bounds on connections: the checks before any route."""
