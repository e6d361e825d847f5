"""Facts of a profile, before anybody judges it: names of frames, whose functions they are, what waits are for."""
