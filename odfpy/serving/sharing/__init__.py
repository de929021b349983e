"""The Delta Sharing protocol, below `/delta-sharing`: lists, metadata, files, changes, and URLs of files."""
