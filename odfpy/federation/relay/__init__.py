"""A relay: identifying requesters, answering questions, forwarding them to peers, and the tickets that it issues."""
