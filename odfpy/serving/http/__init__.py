"""HTTP infrastructure: connections, limits, memory budgets, responses, errors, logs."""
