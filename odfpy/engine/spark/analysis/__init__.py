"""Analysis of queries before they run: names are admitted, Spark analyzes, and nondeterminism is refused."""
