"""What a query is before it runs: admitted by name, analyzed by Spark, deterministic or refused."""
