"""Flame graphs and flame charts as SVG."""
