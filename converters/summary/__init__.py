"""Summary of a profile: the figures, the answer in words, and both for a terminal."""
