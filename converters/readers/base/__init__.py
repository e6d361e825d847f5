"""Shared by the readers: the input, its options, counts of skipped lines, caches for repeated text."""
