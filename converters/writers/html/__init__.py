"""The page with the graph, the table and the search."""
