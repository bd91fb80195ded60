"""Messages and services of A2A v1.0 and v0.3, in a descriptor pool of their own. Made by proto/generate.py; do not edit."""
