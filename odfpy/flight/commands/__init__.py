"""Requests as bytes of commands, for each kind of server."""
