"""CEDA's roles on one simulated server, by both vendors' SDKs."""

from __future__ import annotations

from typing import Any, Literal

Vendor = Literal["openai", "anthropic"]

KEY_ENV = "MOOT_TEST_KEY"
"""Environment variable of the key, which a test sets to any value."""


def vendor_binding(vendor: Vendor, port: int) -> dict[str, Any]:
    """A member that calls the server on this port by the vendor's SDK."""
    base = f"http://127.0.0.1:{port}" + ("/v1" if vendor == "openai" else "")
    return {"model": f"{vendor}/simulated", "base_url": base, "api_key_env": KEY_ENV}


def ceda_roles(port: int, vision: Vendor = "openai") -> dict[str, list[dict[str, Any]]]:
    """Two debaters and two judges, one by each SDK, and a member for pictures."""
    one, other = vendor_binding("openai", port), vendor_binding("anthropic", port)
    return {"debater": [one, other], "judge": [other, one], "vision": [vendor_binding(vision, port)]}
