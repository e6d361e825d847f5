"""SystemTap scripts as package data."""
