"""The persistent state of a relay, in the database of sharing: objects, certificates, tickets, results."""
