"""HTTP itself: connections, limits, budgets of memory, replies, errors, logs."""
