"""Relays as servers: Arrow Flight over mTLS."""
