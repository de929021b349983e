"""Repositories in object stores: S3 and compatible servers, Google Cloud Storage, Azure Blob Storage."""
