"""Kinds of tables that can be shared; each module implements `contract.ReadableTable`."""
