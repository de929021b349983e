"""Sources: adapters for the data of a relay. One module per kind, one contract (`odfpy.testing.sources`)."""
