"""Knots of a wait-for graph, and a part of it that fits."""
