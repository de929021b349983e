"""`odf serve`: datasets of workspaces for other participants, over HTTP. Needs the extra `serve`."""
