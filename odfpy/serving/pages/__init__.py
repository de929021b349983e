"""Pages for people, at `/ui`: a shell and built assets; everything else the browser asks the REST API for."""
