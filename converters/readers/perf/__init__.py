"""The output of perf script: samples, and the scheduler's events."""
