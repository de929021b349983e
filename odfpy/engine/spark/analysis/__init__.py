"""Analysis of a query before it runs: admitted by name, analyzed by Spark, deterministic or refused."""
