"""The Python interface, for programs and notebooks: `odfpy.connect`."""
