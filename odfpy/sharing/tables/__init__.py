"""Kinds of tables that can be shared: each is a module that implements `contract.ReadableTable`."""
