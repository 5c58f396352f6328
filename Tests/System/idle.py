"""Clients that connect through the proxy, complete the TLS handshake, and send no request.

All connect at once, and stay until standard input ends. The counts of their states are printed once each is settled or
has waited for ten seconds, and again at the end.

idle.py PROXY-PORT HOST:PORT AUTHORITY COUNT
"""

import asyncio
import collections
import resource
import ssl
import sys

proxy, place, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[4])
context = ssl.create_default_context(cafile=sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
fates = ["waiting"] * count


async def stay(number):
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
        writer.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        status = head.split()[1].decode()
        if status == "200":
            await writer.start_tls(context, server_hostname=place.split(":")[0], ssl_handshake_timeout=600)
            fates[number] = "idle"
            await reader.read()
            status = "closed"
        fates[number] = status
        writer.close()
    except (OSError, EOFError) as error:
        fates[number] = type(error).__name__


def tell():
    print(" ".join(f"{fate}={number}" for fate, number in sorted(collections.Counter(fates).items())), flush=True)


async def main():
    tasks = [asyncio.create_task(stay(number)) for number in range(count)]
    for _ in range(100):
        await asyncio.sleep(0.1)
        if "waiting" not in fates:
            break
    tell()
    await asyncio.to_thread(sys.stdin.read)
    tell()
    for task in tasks:
        task.cancel()


asyncio.run(main())
