"""elfutils' eu-stack, run again and again: wall-clock stacks of one's own processes, without any privilege."""
