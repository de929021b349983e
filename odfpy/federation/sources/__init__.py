"""Where a relay reads data: one module for each kind of connection, all with one contract (`odfpy.testing.sources`)."""
