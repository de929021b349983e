"""REST endpoints for schedules, runs and the scheduler."""
