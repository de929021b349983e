"""Derivative datasets: the new part of their inputs, the engine's run over it, and the history of these runs."""
