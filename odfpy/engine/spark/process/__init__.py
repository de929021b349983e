"""Spark as a process: its settings, its Java, its sessions, its start-up cache, and the way to a cluster."""
