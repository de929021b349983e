"""Schedules of datasets: values, their form in files and manifests, and the arithmetic of their times."""
