"""Moving datasets between two places: blocks, slices, references, signatures, and the checks on the way."""
