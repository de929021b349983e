"""Transfer of datasets: blocks, slices, references, signatures, and their validation."""
