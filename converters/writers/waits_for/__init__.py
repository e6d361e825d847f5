"""Writes the wait-for graph of a profile with wakers."""
