"""What a wait-for graph shows: its knots, and a part of it that fits."""
