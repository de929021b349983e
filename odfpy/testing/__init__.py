"""Contract suites: what every implementation of an interface must do, as classes of tests to inherit.

They need `pytest` and `hypothesis`, which come with the extra `dev`.
"""
