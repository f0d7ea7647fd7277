"""Who sends a request, and how a stranger is refused."""

import asyncio
import ipaddress
from functools import lru_cache

from starlette.requests import Request

from adapop.limits import is_public

REFUSAL_SECONDS = 0.5


async def refusing_slowly() -> None:
    """Waits before a stranger is refused, who would else ask again at once, and again."""
    if is_public():
        await asyncio.sleep(REFUSAL_SECONDS)


def visitor_of(request: Request) -> str:
    """The sender of a request: the address that it came from, as uvicorn knows it."""
    return network_of(request.client.host) if request.client else ""


@lru_cache(10_000)
def network_of(host: str) -> str:
    """The address itself, or of IPv6 its /64: whoever has one address there has all of them."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4 or address.ipv4_mapped:
        return str(getattr(address, "ipv4_mapped", None) or address)
    return str(ipaddress.ip_network((address, 64), strict=False))
