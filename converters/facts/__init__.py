"""What a profile says, before anybody judges it: what frames are called, whose they are, what a wait is for."""
