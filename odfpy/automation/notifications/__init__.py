"""Notifications of what happens to datasets while nobody looks: notices, receivers, and the ways to them."""
