"""Intervals of a scan that goes on."""
