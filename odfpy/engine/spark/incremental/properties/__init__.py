"""What the plan alone says of a query: its keys, its times, its columns, what it cannot have."""
