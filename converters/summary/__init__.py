"""What an off-CPU profile says: the figures, the answer in words, and both for a terminal."""
