"""Stand-ins for modules: there while others are imported, gone afterwards."""

import gc
import sys

import pytest

from deciban.later import Later, uncollected, waiting


@pytest.fixture
def unloaded(monkeypatch):
    """A small module of the standard library, not loaded yet."""
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    yield "colorsys"
    sys.modules.pop("colorsys", None)


def test_a_stand_in_is_there_for_a_while_and_then_gone(unloaded):
    with waiting(unloaded):
        import colorsys as early
    assert isinstance(early, Later)
    assert unloaded not in sys.modules
    import colorsys

    assert not isinstance(colorsys, Later)
    assert early.rgb_to_hls is colorsys.rgb_to_hls


def test_asking_for_something_meanwhile_loads_the_module_for_good(unloaded):
    with waiting(unloaded):
        from colorsys import rgb_to_hls
    assert not isinstance(sys.modules[unloaded], Later)
    assert rgb_to_hls is sys.modules[unloaded].rgb_to_hls


def test_a_module_within_a_package_waits_as_well(monkeypatch):
    import xml

    monkeypatch.delitem(sys.modules, "xml.sax", raising=False)
    monkeypatch.delattr(xml, "sax", raising=False)
    with waiting("xml.sax"):
        import xml.sax as early

        assert isinstance(early, Later)
    assert not hasattr(xml, "sax")
    import xml.sax

    assert xml.sax.handler is early.handler
    assert not isinstance(xml.sax, Later)


def test_a_loaded_module_stays():
    with waiting("sys", "os.path"):
        import os.path as path
    assert not isinstance(path, Later)


def test_what_is_not_installed_is_still_not_there():
    with waiting("no_such_module", "no_such_package.module"), pytest.raises(ModuleNotFoundError):
        import no_such_module  # noqa: F401


def test_a_stand_in_lacks_what_the_module_lacks():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        Later("colorsys").nothing  # noqa: B018


@pytest.mark.parametrize("before", [True, False])
def test_collections_go_on_as_before(before):
    (gc.enable if before else gc.disable)()
    try:
        with uncollected():
            assert not gc.isenabled()
        assert gc.isenabled() is before
    finally:
        gc.enable()


def test_what_was_made_meanwhile_is_old_and_what_was_frozen_stays_so():
    with uncollected():
        made = [[] for _ in range(10_000)]
    assert gc.get_freeze_count() == 0
    assert gc.get_count()[0] < len(made)
    gc.freeze()
    try:
        with uncollected():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_stand_ins_go_when_the_import_fails(unloaded):
    with pytest.raises(ImportError), waiting(unloaded):
        raise ImportError("of something else")
    assert unloaded not in sys.modules
