"""The Smart Transfer Protocol (RFC-008), compatible with the reference implementation.

messages      the messages, and their JSON encoding (`json_form`)
archive       blocks as a gzipped tar
incoming      received blocks on top of an existing chain: validated, then committed
session       the form of one side of a conversation: a generator of steps, independent of the network
pull, push    the two conversations, both sides of each
signed_urls   URLs that let their holder download or upload one object for a limited time
websocket     the client's transport, with its `upload_thread`; the server's is `odfpy.serving.transfer.smart`
"""
