"""Files that rows link to: which there are, whether they are there, and how they are kept."""
