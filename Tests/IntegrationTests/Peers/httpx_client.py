"""Uses httpx over HTTP/2 with the environment's proxy and roots: httpx_client.py URL. Prints a JSON line.

Twenty concurrent requests, then a POST of the received body to /echo.
"""

import asyncio
import hashlib
import json
import ssl
import sys
import os

import httpx


async def main():
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    async with httpx.AsyncClient(http2=True, http1=False, verify=context, timeout=60) as client:
        many = await asyncio.gather(*(client.get(sys.argv[1]) for _ in range(20)))
        digests = {hashlib.sha256(answer.content).hexdigest() for answer in many}
        received = (await client.post(httpx.URL(sys.argv[1]).join("/echo"), content=many[0].content)).json()
        print(
            json.dumps(
                {
                    "protocol": many[0].http_version,
                    "statuses": sorted({answer.status_code for answer in many}),
                    "length": len(many[0].content),
                    "isSame": digests == {received["sha256"]},
                    "echo": received["length"],
                }
            )
        )


try:
    asyncio.run(main())
except httpx.HTTPError as error:
    print(json.dumps({"failed": f"{type(error).__name__}: {error}"}))
    sys.exit(1)
