"""`odf serve`: a server that offers datasets of workspaces over HTTP and Flight SQL. Requires the extra `serve`."""
