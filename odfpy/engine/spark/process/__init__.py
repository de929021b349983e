"""Spark as a process: its settings, its Java, its sessions, its start-up cache, and connections to clusters."""
