"""Functions of libraries that are worth timing: which they are, and where a probe on one costs least."""
