"""The REST API: one module for each group of endpoints, with the models of their JSON."""
