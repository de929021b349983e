"""Encodings of requests as Flight commands, for each kind of server."""
