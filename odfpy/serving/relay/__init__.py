"""Relay servers: Arrow Flight over mTLS."""
