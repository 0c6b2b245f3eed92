"""The service: answers over HTTP, and lessons that are kept in a journal; `pip install deciban[web]`."""
