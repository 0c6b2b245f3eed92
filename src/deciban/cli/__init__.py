"""The command line: one command for each thing that the library does with a file.

Modules of commands hold the options and what is printed; the library computes. Importing them loads nothing heavy, so
that `deciban --help` is quick: numpy and the library are imported inside the functions that use them, or by the modules
`rows`, `judging`, `fit_report` and `pictures`, which are imported there.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` and `collections` are slow to import for a mail that a service filters
if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> None:
    """Run `deciban` with the arguments of this process, and end the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["filter"] and any(one.startswith("--service") for one in arguments):
        from deciban.cli import mail_client

        answered = mail_client.filter_by_service(arguments[1:])
        if isinstance(answered, int):
            mail_client.end_process(answered)
        else:
            arguments = ["filter", *answered]
    from deciban.cli.process import end_process

    end_process(run_program(arguments))


def run_program(arguments: Sequence[str]) -> int:
    """Set this process up as the program's own, run a command and return its exit code."""
    from deciban.cli.output import prepare_streams
    from deciban.cli.process import handle_signals, prepare_process, print_warnings_as_notes, run, unless_stopped

    def prepare_and_run() -> int:
        handle_signals()
        print_warnings_as_notes()
        if not any(argument.startswith("--engine") for argument in arguments):  # engines import what they like
            prepare_process()
        return run(arguments)

    prepare_streams()
    return unless_stopped(prepare_and_run)
