"""What a newcomer sees first, on files that every installation has: `python -m deciban.demo`."""
