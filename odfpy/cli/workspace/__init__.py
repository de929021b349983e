"""Commands for the workspace and this installation: settings, keys, sources, the engine."""
