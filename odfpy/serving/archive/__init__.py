"""Archives of files over HTTP: the paths of datalake's API, and those by which files come in."""
