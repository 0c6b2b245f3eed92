"""A browser without a window, steered over the W3C WebDriver protocol, which is JSON over HTTP."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

NO_AXE = find_spec("axe_core_python") is None
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,1100"]
FIND = "element-6066-11e4-a52e-4f735466cecf"  # what the protocol calls an element


def missing():
    """Why there is no browser, or None."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} not installed" if lacking else None


class Browser:
    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.root = f"http://127.0.0.1:{port}"
        try:
            self._wait()
            wanted = {
                "browserName": "chrome",
                "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": OPTIONS},
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self.driver.terminate()
            self.driver.wait()
            raise
        self.root += f"/session/{answer['sessionId']}"
        return self

    def __exit__(self, *problem):
        try:
            self._call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()

    def _wait(self):
        for _ in range(100):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("chromedriver did not answer")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["value"]

    def open(self, place):
        """Open a file, or an address."""
        self._call("POST", "/url", {"url": place if isinstance(place, str) else place.resolve().as_uri()})

    def wait(self, script, *arguments, seconds=30):
        """Wait until a script returns something true, and return it."""
        end = time.monotonic() + seconds
        while not (value := self.run(script, *arguments)):
            assert time.monotonic() < end, f"still false after {seconds} s: {script}"
            time.sleep(0.02)
        return value

    def resize(self, width, height=900):
        """Show the page as on a screen of this size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        command = {"cmd": "Emulation.setDeviceMetricsOverride", "params": size}
        self._call("POST", "/goog/cdp/execute", command)

    def colours(self, scheme):
        """Show pages in a "light" or a "dark" colour scheme."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        self._call("POST", "/goog/cdp/execute", command)

    def serious_violations(self):
        """What axe-core calls serious or critical: the rule and the first element of each violation."""
        self.run(Path(find_spec("axe_core_python").origin).with_name("axe.min.js").read_text())
        self.run("window.found = null; axe.run().then(result => { window.found = result.violations })")
        violations = self.wait("return window.found !== null && [window.found]", seconds=60)[0]
        return [(one["id"], one["nodes"][0]["html"]) for one in violations if one["impact"] in ("serious", "critical")]

    def log(self):
        """What the console holds since the last call."""
        return self._call("POST", "/se/log", {"type": "browser"})

    def run(self, script, *arguments):
        """The value of a script that returns one."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def _element(self, selector):
        """Address of an element, once the page has it."""
        self.wait("return document.querySelector(arguments[0]) !== null", selector)
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        return f"/element/{found[FIND]}"

    def click(self, selector):
        self._call("POST", self._element(selector) + "/click", {})

    def press(self, selector, keys):
        """Type into an element."""
        self._call("POST", self._element(selector) + "/value", {"text": keys})

    def text(self, selector):
        """Text of an element, once the page has it."""
        self.wait("return document.querySelector(arguments[0]) !== null", selector)
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))
