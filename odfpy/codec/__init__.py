"""Encodings of values: FlatBuffers for blocks, YAML for manifests, JSON for servers, all derived from dataclasses.

    shape            the fields of a dataclass, read from its annotations once; all encodings follow it
    tree             values to and from trees of dicts and lists, strictly: the common form of YAML and JSON
    yaml             manifests and files of settings
    flatbuffers_...  the bytes of blocks, whose hash is the name of the block
    canonical_json   JSON with one possible text, which is hashed and signed
    errors, explain  the codes of all errors, and the explanations of `odf help CODE`

A new field is declared in one place, its dataclass. The classes themselves are in `odfpy.chain`, `odfpy.dataset` and
others, and know nothing of bytes.
"""
