"""The page of a scan: one HTML file with its verdicts, graphs, lanes of threads, and tables."""
