"""Python interpreters inside of processes."""
