"""Data for pictures and tables: samples merged into a tree, and the calls of a timeline."""
