"""Encodings of values: FlatBuffers for blocks, YAML for manifests, JSON for servers, all derived from dataclasses.

    shape            the fields of a dataclass, derived from its annotations; all encodings use them
    tree             values to and from trees of dicts and lists, strictly: the common form of YAML and JSON
    yaml             manifests and settings files
    flatbuffers_...  the bytes of blocks, whose hash is the name of the block
    canonical_json   canonical JSON, for hashes and signatures
    errors, explain  the codes of all errors, and the explanations of `odf help CODE`

A new field is declared in one place, its dataclass. The classes themselves are in `odfpy.chain`, `odfpy.dataset` and
other packages, and do not depend on encodings.
"""
