"""Services that are forked from a process which has imported the program: they start in a tenth of the CPU time.

    with Forks() as forks:
        service = Running(model, start=forks.start)

A forked service differs from `deciban serve` in a new process only in that its modules are loaded already.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

from program import environment


class Forked:
    """A service as `subprocess.Popen` would describe it."""

    def __init__(self, forks: "Forks", pid: int, stdout: int, stderr: int) -> None:
        self.forks, self.pid, self.code = forks, pid, None
        self.stdout, self.stderr = os.fdopen(stdout, encoding="utf-8"), os.fdopen(stderr, encoding="utf-8")

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout: float | None = None) -> int:
        self.code = self.forks.ask({"wait": self.pid})
        return self.code


class Forks:
    """The process that services are forked from."""

    def __enter__(self):
        self.line, other = socket.socketpair()
        command = [sys.executable, "-W", "error", __file__, str(other.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[other.fileno()], env=environment())
        other.close()
        return self

    def __exit__(self, *problem):
        self.line.close()
        self.process.wait()

    def start(self, arguments: list[str]) -> Forked:
        """Fork a process that runs `deciban` with the arguments."""
        (out, out_end), (error, error_end) = os.pipe(), os.pipe()
        pid = self.ask({"run": arguments}, [out_end, error_end])
        os.close(out_end)
        os.close(error_end)
        return Forked(self, pid, out, error)

    def ask(self, what: dict, descriptors: list[int] = ()) -> int:
        """Send a request and return the number that it is answered with."""
        socket.send_fds(self.line, [json.dumps(what).encode()], list(descriptors))
        return int(self.line.recv(100))


def serve_forks(line: socket.socket) -> None:
    """Fork, and wait for children, as the other end of the line asks, until it is closed."""
    import deciban.service.server  # noqa: F401  and with it all that a service imports
    from deciban import GenerativeClassifier, load
    from deciban.cli.app import program_with
    from deciban.service import receipts, teacher  # noqa: F401

    program_with(None)
    texts = GenerativeClassifier(ledger=True).fit(["one text", "another one"] * 4, ["a", "b"] * 4)
    with tempfile.TemporaryDirectory() as folder:  # these imports happen when they are first needed
        texts.learn(["new words"], ["a"]).save(f"{folder}/texts.deciban")
        load(f"{folder}/texts.deciban").predict(["one"])

    while True:
        data, descriptors, *_ = socket.recv_fds(line, 2**16, 2)
        if not data:
            return
        asked = json.loads(data)
        if "wait" in asked:
            line.sendall(str(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])).encode())
            continue
        pid = os.fork()
        if pid == 0:
            line.close()
            os.setsid()
            for given, descriptor in zip(descriptors, (1, 2)):
                os.dup2(given, descriptor)
                os.close(given)
            sys.argv = ["deciban", *asked["run"]]
            from deciban.cli import main

            main()
        for given in descriptors:
            os.close(given)
        line.sendall(str(pid).encode())


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        serve_forks(given)
