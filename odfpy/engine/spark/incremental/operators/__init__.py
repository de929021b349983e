"""The operators of stateful queries, one module a kind, and the planner that finds them in a plan."""
