"""Commands of relays."""
