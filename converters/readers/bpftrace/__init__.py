"""Maps and stacks as bpftrace prints them."""
