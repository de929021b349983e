"""Web pages at `/ui`: an HTML shell and built assets; the browser gets everything else from the REST API."""
