"""Python's http.client: requests the URLs of its input through the proxy, and reports the responses. It keeps its
connection while it can."""

import hashlib
import http.client
import sys

connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=10)
for url in sys.stdin.read().split():
    try:
        connection.request("GET", url, headers={"Host": "a.test"})
        response = connection.getresponse()
        body = response.read()
        print(url, response.status, len(body), hashlib.md5(body).hexdigest()[:8])
    except (http.client.HTTPException, OSError, ValueError):
        print(url, "error")
        connection.close()
