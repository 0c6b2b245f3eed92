"""A service as a process of its own, and a client."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import httpx

from program import PROGRAM, environment


def new_process(arguments: list[str], **variables: str) -> subprocess.Popen:
    """Start the program with its output in pipes."""
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
        start_new_session=True,
    )


class Running:
    """`deciban serve` in a process; its address, and requests to it.

    `start` starts the program with arguments, and returns what `subprocess.Popen` does; by default, as a new process.
    """

    def __init__(self, model: Path, *options: str, start=None, **variables: str) -> None:
        self.model = model
        arguments = ["serve", str(model), "--port", "0", "--rate", "0", *options]
        self.process = start(arguments) if start is not None else new_process(arguments, **variables)
        line = self.process.stdout.readline()
        found = re.match(r"(http://\S+)/ ", line)
        if not found:
            self.process.kill()
            raise RuntimeError(line + self.process.stderr.read())
        self.address = found[1]
        self.errors: list[str] = []
        self._reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True)
        self._reader.start()
        self.client = httpx.Client(base_url=self.address, timeout=30, trust_env=False)

    def post(self, path, content=None, status=200, **more):
        answer = self.client.post(path, json=content, **more) if content is not None else self.client.post(path, **more)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json()

    def get(self, path, status=200, **more):
        answer = self.client.get(path, **more)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json()

    def kill(self):
        """End the process at once, as a power failure would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._close()

    def stop(self):
        """End the process in an orderly way."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        self._close()
        return code

    def _close(self):
        self.client.close()
        self._reader.join()
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        if self.process.poll() is None:
            self.stop()


def raw(address: str, data: bytes, seconds: float = 10.0) -> bytes:
    """Send bytes to the service and return the bytes of its answer."""
    import socket

    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), seconds) as connection:
        connection.sendall(data)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


def wait_until(true, seconds=10.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def fetch(address: str) -> dict:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.loads(answer.read())
