"""`deciban filter --service URL`: passes a mail through a running service.

Starting Python takes most of the CPU time of a mail, so this module imports hardly anything, and parses the usual
arguments itself. `deciban.cli.main` tries it before it imports the program. The complete command asks the service by
`ask`, too.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    import _socket
    from collections.abc import Sequence

TIMEOUT = 10.0  # seconds for each step of the conversation
MOST_HEAD = 2**16  # bytes of the status line and the headers of an answer
VALUES = ("--service", "--unsure", "--exit-code", "--token-file")  # options with a value
FLAGS = ("-q", "--quiet")
CODES = range(1, 126)  # exit codes that shells leave to programs
SUCCESS, FAILURE, INTERRUPTED = 0, 1, 130
PORTS = {"http": 80, "https": 443}


class NoAnswerError(Exception):
    """Raised if the service does not answer, or its answer is not that of `deciban serve`."""


def filter_by_service(arguments: Sequence[str]) -> int | list[str]:
    """Run `deciban filter` with a service and return the exit code.

    Where the complete command has to run, its arguments are returned: all of them if they are not plain enough for this
    module or an error has to be reported, and those without the service if it does not answer. The message that was
    read is then given back as stdin.
    """
    options = parse(arguments)
    if options is None or sys.stdin is None or sys.stdin.isatty():
        return list(arguments)
    try:
        codes = {name: int(code) for name, _, code in (given.rpartition("=") for given in options["--exit-code"])}
        [*_, unsure] = 0.9, *map(float, options["--unsure"])
        service, token = options["--service"][-1], None
        address(service)
        if options["--token-file"]:
            token = read_token(options["--token-file"][-1])
    except (OSError, ValueError):
        return list(arguments)
    if not set(codes.values()) <= set(CODES) or not all(map(_is_plain, codes)) or not 0 <= unsure <= 1:
        return list(arguments)
    try:
        message = sys.stdin.buffer.read()
        try:
            answer, value = ask(service, message, unsure, token)
        except (NoAnswerError, OSError) as error:
            return _without_service(options, service, error, message)
        left = memoryview(answer)
        while left:  # with PYTHONUNBUFFERED a stream may take a part at a time
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        sys.stderr.write(f"deciban: cannot write the message: {error.strerror}.\n")
        return FAILURE
    return exit_code(value, codes)


def no_answer(service: str, error: Exception) -> str:
    """The note that the service does not answer."""
    return f"deciban: {service} does not answer ({error}); the model file is read instead."


def _without_service(options: dict[str, list[str]], service: str, error: Exception, message: bytes) -> list[str]:
    """Return arguments for the complete command, which shall read the model file, and give it the message as stdin."""
    import io

    sys.stderr.write(no_answer(service, error) + "\n")
    sys.stdin = io.TextIOWrapper(io.BytesIO(message))
    named = [[name, value] for name in ("--unsure", "--exit-code") for value in options[name]]
    return [word for pair in named for word in pair] + options["flags"] + ["--", *options["model"]]


def parse(arguments: Sequence[str]) -> dict[str, list[str]] | None:
    """Return the values of each option; None unless there is one MODEL, a service, and no other option.

    >>> parse(["spam.deciban", "--service", "http://127.0.0.1:8000", "--unsure=0.99"])["--unsure"]
    ['0.99']
    >>> parse(["spam.deciban", "--service", "http://127.0.0.1:8000", "--json"])
    """
    found: dict[str, list[str]] = {name: [] for name in (*VALUES, "flags", "model")}
    rest = list(arguments)
    while rest:
        given = rest.pop(0)
        name, equals, value = given.partition("=")
        if name in VALUES and (equals or rest):
            found[name].append(value if equals else rest.pop(0))
        elif given in FLAGS:
            found["flags"].append(given)
        elif given.startswith("-"):
            return None
        else:
            found["model"].append(given)
    return found if len(found["model"]) == 1 and found["--service"] else None


def ask(service: str, message: bytes, unsure: float, token: str | None) -> tuple[bytes, str]:
    """Return the message with its header, and the value of that header, as the service answers.

    Raises
    ------
    NoAnswerError, OSError
        If the service does not answer, or with an error.
    """
    host, port, path, secure = address(service)
    name = f"[{host}]" if ":" in host else host
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    head = (
        f"POST {path}/filter?unsure={unsure!r} HTTP/1.0\r\nHost: {name}:{port}\r\n"
        f"Content-Type: message/rfc822\r\nContent-Length: {len(message)}\r\n{authorization}\r\n"
    )
    head_bytes, body = _exchange(host, port, secure, head.encode("ascii", "replace") + message)
    status, *lines = head_bytes.decode("latin-1").split("\r\n")
    headers = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    code = status.split(" ")[1:2]
    if code != ["200"]:
        raise NoAnswerError(f"status {' '.join(code)}")
    value = headers.get("x-deciban", "")
    if headers.get("content-length") != str(len(body)) or value.count("; ") != 2:
        raise NoAnswerError("the answer is not that of `deciban serve`")
    return body, value


def address(service: str) -> tuple[str, int, str, bool]:
    """Return host, port, path and whether TLS is used, of the address of a service.

    >>> address("http://127.0.0.1:8000/"), address("https://[::1]/mail")
    (('127.0.0.1', 8000, '', False), ('::1', 443, '/mail', True))
    """
    scheme, _, rest = service.partition("://")
    place, slash, path = rest.partition("/")
    host, colon, port = place.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = place, str(PORTS.get(scheme, ""))
    plain = (place + path).isascii() and (place + path).isprintable() and " " not in place + path
    if scheme not in PORTS or not host or not plain or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--service {service!r} is not an address such as http://127.0.0.1:8000.")
    return host.strip("[]"), int(port), (slash + path).rstrip("/"), scheme == "https"


def read_token(path: str) -> str:
    """Return the token that a file holds."""
    with open(path, encoding="ascii", errors="replace") as file:
        token = file.read().strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(f"--token-file {path!r} does not hold one token.")
    return token


def exit_code(value: str, codes: dict[str, int]) -> int:
    """Return the exit code for the value of the header: that of its class, unless the answer is unsure.

    >>> exit_code("spam; 32 dban; unsure=no", {"spam": 99}), exit_code("spam; 3 dban; unsure=yes", {"spam": 99})
    (99, 0)
    """
    label, _, unsure = value.rsplit("; ", 2)
    return codes.get(label, SUCCESS) if unsure == "unsure=no" else SUCCESS


def _exchange(host: str, port: int, secure: bool, request: bytes) -> tuple[bytes, bytes]:
    """Send a request and return the head and the body of the answer."""
    connection = _connect(host, port, secure)
    try:
        connection.sendall(request)
        parts = []
        while part := connection.recv(2**16):
            parts.append(part)
    finally:
        connection.close()
    head, separator, body = b"".join(parts).partition(b"\r\n\r\n")
    if not separator or len(head) > MOST_HEAD:
        raise NoAnswerError("the answer is not HTTP")
    return head, body


def _connect(host: str, port: int, secure: bool) -> _socket.socket:
    """Return a connection to the first address of a host that accepts one."""
    if secure:
        import socket
        import ssl

        plain = socket.create_connection((host, port), TIMEOUT)
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    import _socket  # the module below `socket`, which imports `enum`: half of the time of a mail

    failure: OSError | None = None
    name = host.encode("ascii")  # for text, a codec for international names is imported
    for family, kind, protocol, _, place in _socket.getaddrinfo(name, port, 0, _socket.SOCK_STREAM):
        connection = _socket.socket(family, kind, protocol)
        connection.settimeout(TIMEOUT)
        try:
            connection.connect(place)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure or NoAnswerError("the host has no address")


def _is_plain(name: str) -> bool:
    """Whether a class is written in the header as it is."""
    return bool(name) and name.isascii() and name.isprintable() and ";" not in name and name == " ".join(name.split())


def end_process(code: int) -> None:
    """End the process at once: the interpreter has nothing to clean up."""
    sys.stderr.flush()
    os._exit(code)
