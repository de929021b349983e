"""Locations of datasets: on file servers, on nodes, and as listed by repositories."""
