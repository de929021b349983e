"""A relay: who asks, what it answers, what it asks of its peers, and the tickets that it gives away."""
