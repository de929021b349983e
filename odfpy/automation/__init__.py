"""The scheduler: runs jobs when they are due, each in its own process, and records each run as a row of a dataset."""
