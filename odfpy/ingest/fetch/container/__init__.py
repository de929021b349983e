"""What containers print (ODF specification, "FetchStep: Container")."""
