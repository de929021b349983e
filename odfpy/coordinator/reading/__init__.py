"""Reading of datasets: current and past rows, comparisons of two moments, exports."""
