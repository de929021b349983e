"""Schedules, runs and the scheduler, over REST."""
