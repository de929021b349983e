"""Derivative datasets: new parts of their inputs, runs of their queries by an engine, and the history of runs."""
