"""Collectives: calls of communication libraries, joined over the ranks that meet in them."""
