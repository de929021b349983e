"""Output of containers (ODF specification, "FetchStep: Container")."""
