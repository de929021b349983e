"""Notifications of new heads: server-sent events for subscribers, webhooks for receivers."""
