"""Confinement of processes on Linux (namespaces, Landlock, limits), for what somebody else's manifest makes us run."""
