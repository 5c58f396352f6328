"""Fetches a URL with the environment's proxy and authority.

fetch.py urllib|strict|requests URL
"""

import ssl
import sys
import urllib.request

way, url = sys.argv[1:]
if way == "requests":
    import requests

    session = requests.Session()
    # More than one, so that the connection is used again.
    answers = [session.get(url).text for _ in range(3)]
    print(answers[-1].strip())
else:
    context = ssl.create_default_context()
    if way == "strict":
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    print(urllib.request.urlopen(url, context=context).read().decode().strip())
