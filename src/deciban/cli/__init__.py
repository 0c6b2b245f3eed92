"""The command line: everything that the library does with a file, in one word.

One file a command, each thin: what is computed, the library computes. Nothing heavy is imported before it is used.
"""

from __future__ import annotations


def main() -> None:
    """Run `deciban` with the arguments of this process, and leave with its exit code."""
    import sys

    from deciban.cli.boundary import listen, run, show_warnings_plainly
    from deciban.cli.startup import prepare_process

    listen()
    show_warnings_plainly()
    prepare_process()
    sys.exit(run(sys.argv[1:]))
