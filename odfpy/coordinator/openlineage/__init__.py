"""Events of pulls in the format of OpenLineage, for catalogs that show where data comes from (openlineage.io)."""
