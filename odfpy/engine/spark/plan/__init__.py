"""Access to Spark's logical plans from Python: what operators and expressions mean, and how they are built."""
