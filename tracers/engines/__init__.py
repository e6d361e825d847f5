"""Who captures: each takes a scope and measures, and returns a profile."""
