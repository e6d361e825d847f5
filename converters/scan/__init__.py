"""The report of a scan: what holds each process of a host up, because of whom, and what to look at next."""
