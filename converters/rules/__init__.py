"""Rules that judge: each finds one kind of trouble in the facts of a profile; `ranking` says which matters most."""
