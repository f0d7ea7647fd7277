"""Identifies the sender of a request, and delays refusals."""

import asyncio
import ipaddress
from functools import lru_cache

from starlette.requests import Request

from adapop.limits import is_public

REFUSAL_SECONDS = 0.5


async def refusing_slowly() -> None:
    """On a public page, waits before a refusal: a client that retries at once is slowed."""
    if is_public():
        await asyncio.sleep(REFUSAL_SECONDS)


def visitor_of(request: Request) -> str:
    """The sender of a request: its address, as uvicorn reports it."""
    return network_of(request.client.host) if request.client else ""


@lru_cache(10_000)
def network_of(host: str) -> str:
    """An IPv4 address, or the /64 network of an IPv6 address, which one sender usually owns."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4 or address.ipv4_mapped:
        return str(getattr(address, "ipv4_mapped", None) or address)
    return str(ipaddress.ip_network((address, 64), strict=False))
