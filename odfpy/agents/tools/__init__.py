"""The tools: what a model may ask of datasets. Each module has one of them, or two that belong together."""
