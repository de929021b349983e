"""The Smart Transfer Protocol (RFC-008), as the reference implementation speaks it.

messages      what is said, and its form in JSON (`json_form`)
archive       blocks as a gzipped tar
incoming      blocks from elsewhere on top of what a dataset has: checked, then committed
session       how a side of a conversation is written down: a generator of steps that knows of no network
pull, push    the two conversations, both sides of each
signed_urls   URLs that let the bearer get or put one object for some time
websocket     the client's transport; the server's is `odfpy.serving.transfer.smart`
"""
