"""Measures the product against bare servers on the same libraries, in the same run: `make bench`.

Laws: nothing here is collected by pytest and no test depends on a time. plan.py says what is measured, load.py how,
servers.py what is measured; connections.py is the client and `python -m tests.bench` puts them together.
"""
