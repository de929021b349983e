"""Federation: one question over the data of many organizations, of which each shows what it wants (ADR 0042)."""
