"""Notifications of events in a workspace: notices, their receivers, and the channels to them."""
