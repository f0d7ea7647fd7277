"""Identifies the sender of a request, and of the event that is handled now."""

import ipaddress
from contextvars import ContextVar
from functools import lru_cache

from starlette.requests import Request

SENDER: ContextVar[str] = ContextVar("adapop-sender", default="")


def visitor() -> str:
    """The sender of the event now being handled; empty outside events."""
    return SENDER.get()


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
