"""The search index of an archive: its records by what, where, time, job, id and object."""
