"""Comparison of two runs of one job."""
