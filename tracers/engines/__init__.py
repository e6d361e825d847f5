"""The engines, which capture: each takes a scope and measures, and returns a profile."""
