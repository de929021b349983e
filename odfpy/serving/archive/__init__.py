"""Archives of files over HTTP: the endpoints of datalake's API, and those for uploads."""
