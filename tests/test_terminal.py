"""Progress bars of work that another library does."""

import threading

from deciban import terminal


def test_work_elsewhere_is_asked_how_far_it_is_until_it_ends(monkeypatch):
    monkeypatch.setattr(terminal.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(terminal, "INTERVAL", 0.001)
    asked = threading.Semaphore(0)

    def completed():
        asked.release()
        return -1.0  # not known yet

    with terminal.watched("queries", 100, completed):
        assert all(asked.acquire(timeout=10) for _ in range(3))
    while asked.acquire(blocking=False):
        pass
    assert not asked.acquire(timeout=0.05)


def test_off_a_terminal_nothing_is_asked(capsys):
    with terminal.watched("queries", 100, lambda: 1 / 0):
        pass
    assert capsys.readouterr().err == ""
