"""Proxies of the environment, by one rule for all of moot's clients.

Not aiohttp's `trust_env`: it would also send what `~/.netrc` holds, and read that file at each request.
"""

from __future__ import annotations

import re
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.request import getproxies_environment

from yarl import URL

from moot.protocols.errors import ConfigError


def environment_proxy(url: str) -> str | None:
    """Proxy of a URL by `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in capitals or not; None without one.

    This machine (`localhost`, 127.0.0.1) is never asked through a proxy, to which it would be another machine.

    Raises:
        ConfigError: the proxy is of a kind that moot does not support, such as SOCKS.
    """
    address, proxies = URL(url), getproxies_environment()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    host = (address.host or "").lower().rstrip(".")
    if not proxy or _is_this_machine(host) or _is_excluded(host, address.port, proxies.get("no", "")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not _is_usable(proxy):
        raise ConfigError(
            f"the proxy {_without_user(proxy)} cannot be used: set HTTPS_PROXY or HTTP_PROXY to http://HOST:PORT, or "
            f"add {host} to NO_PROXY"
        )
    return proxy


def _is_usable(proxy: str) -> bool:
    try:
        address = URL(proxy)
    except ValueError:
        return False
    return address.scheme in ("http", "https") and bool(address.host)


def _without_user(proxy: str) -> str:
    """Proxy without user and password, even if these are not escaped as a URL demands."""
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _is_this_machine(host: str) -> bool:
    address = _ip(host)
    if address is not None:
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def _is_excluded(host: str, port: int | None, entries: str) -> bool:
    """Whether `NO_PROXY` has the host: its name or address, a domain above it or a network, perhaps with a port."""
    for entry in re.split(r"[,\s]+", entries.lower()):
        name, of_port = _split_port(entry.rpartition("://")[2])
        if name and of_port in ("", str(port)) and (name == "*" or _covers(name, host)):
            return True
    return False


def _covers(name: str, host: str) -> bool:
    address = _ip(host)
    if address is not None:
        with suppress(ValueError):
            return address in ip_network(name, strict=False)
    domain = name.removeprefix("*").strip(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _split_port(entry: str) -> tuple[str, str]:
    """Name and port of an entry; the port is empty without one."""
    found = re.fullmatch(r"\[([^\]]*)\](?::(\d+))?|([^:]*):(\d+)", entry)
    if found is None:
        return entry, ""
    return found[1] or found[3] or "", found[2] or found[4] or ""


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
