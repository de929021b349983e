"""New heads, told to others: events for who listens, webhooks for who is called."""
