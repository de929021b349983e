"""Notifications of new heads: events for listeners, webhooks for receivers."""
