"""Identifies the sender of a request, and of the event that is handled now."""

import ipaddress
import os
from contextvars import ContextVar
from functools import lru_cache

import gradio as gr
from starlette.requests import Request

# the networks of a Space's own proxies, which are trusted about a request's sender
SPACE_PROXIES = "127.0.0.1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10"
# of the event that is handled now; empty outside events
SENDER: ContextVar[str] = ContextVar("adapop-sender", default="")


def visitor_of(request: Request | gr.Request) -> str:
    """The sender of a request: its address. Behind a proxy, uvicorn takes it from X-Forwarded-For,
    but only if FORWARDED_ALLOW_IPS names that proxy."""
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


def trust_own_proxies() -> None:
    """Makes a Space take senders' addresses from its own proxies, unless FORWARDED_ALLOW_IPS is
    set."""
    if os.environ.get("SPACE_ID"):
        os.environ.setdefault("FORWARDED_ALLOW_IPS", SPACE_PROXIES)
