"""The looks of things: tables, progress, results, charts, and the one way to a terminal."""
