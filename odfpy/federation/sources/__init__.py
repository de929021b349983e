"""Sources: the places where a relay reads data. One module for each kind, one contract (`odfpy.testing.sources`)."""
