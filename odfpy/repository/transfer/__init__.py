"""Transfer of datasets: blocks, slices, references, signatures, and the validation of all of these."""
