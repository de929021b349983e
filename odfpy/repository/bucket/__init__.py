"""Repositories in object stores: S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage."""
