"""Derivative datasets: what is new in the inputs, the engine's run over it, and the history of these runs."""
