"""Commands for the workspace itself and this installation: settings, keys, sources, the engine."""
