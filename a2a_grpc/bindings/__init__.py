"""The wires (pure: bytes and headers in and out) and the hosts that carry them."""
