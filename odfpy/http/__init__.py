"""HTTP client: connection reuse, restricted redirects, timeouts, limits on responses. Only uses the standard library.

Used for transfers of datasets and for fetching from sources. The interpretation of responses is up to the caller.
Import `odfpy.http.client` only where it is needed: loading TLS takes a while.
"""
