"""The program on a terminal of its own."""

import os
import pty
import select
import time

from program import PROGRAM, environment, import_program, run_as_program


class OnTerminal:
    """The program with a terminal of its own: what it writes there, keys to press, and a pipe as its stdin.

    With `fork`, it is a fork of this process.
    """

    def __init__(self, folder, *arguments, fork=False, **more):
        if fork:
            import_program()
        self.given, self.stdin = os.pipe()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.dup2(self.given, 0)
            os.close(self.stdin)
            os.chdir(folder)
            if fork:
                os.environ.update(TERM="xterm-256color", **more)
                run_as_program(arguments)
            os.execve(PROGRAM[0], [*PROGRAM, *arguments], environment(TERM="xterm-256color", **more))
        os.close(self.given)
        self.seen, self.code = b"", None

    def send(self, text):
        data = memoryview(text.encode())
        while len(data):
            data = data[os.write(self.stdin, data) :]
            self.look(0)

    def look(self, seconds):
        """Read what there is to be read."""
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0.0, end - time.monotonic()))[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                return

    def wait(self, until, seconds=60):
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            self.look(0.05)
        assert until(), self.seen.decode()

    def finish(self):
        """The exit code, and all that was written."""
        os.close(self.stdin)
        self.wait(self._ended)
        self.look(0.1)
        return self.code, self.seen.decode()

    def _ended(self):
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None
