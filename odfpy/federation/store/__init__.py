"""The state of a relay, in the database of sharing: objects, certificates, queries seen, tickets, results."""
