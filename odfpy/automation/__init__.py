"""Data that keeps itself up to date: schedules, runs, notifications."""
