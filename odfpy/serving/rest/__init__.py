"""The REST API: one module for each group of endpoints, and the models of their JSON."""
