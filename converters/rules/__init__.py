"""What is judged: each rule finds one kind of trouble in the facts of a profile; `ranking` says which matters most."""
