"""Reading over HTTP: kept-alive connections, limited redirects, time-outs, bounded answers. Standard library only.

The transfer of datasets and the fetching of sources share this client. It asks and changes nothing; what an answer
means is for the caller to say. Import `odfpy.http.client` where it is needed: TLS takes a while to load.
"""
