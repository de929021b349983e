"""The scheduler: what is due is done, each run in a process of its own, and each is a row of a dataset."""
