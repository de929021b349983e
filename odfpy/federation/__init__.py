"""Federation: a relay answers questions over its own data and that of its peers, each in their own words.

Rooms: `model` (documents), `store` (state), `sources` (where data is read). See ADR 0042.
"""
