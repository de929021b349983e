"""What people use from Python and notebooks: `odfpy.connect`."""
