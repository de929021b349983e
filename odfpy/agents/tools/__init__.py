"""The tools of a model. Each module has one, or two related ones."""
