"""Sources: adapters of what a relay reads data from. One module per kind, one contract (`odfpy.testing.sources`)."""
