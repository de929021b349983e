"""Contract suites: tests for all implementations of an interface, as classes to inherit.

They need `pytest` and `hypothesis`, which the extra `dev` installs.
"""
