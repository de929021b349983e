"""The server of a relay: Arrow Flight over mTLS."""
