"""Acting once a package has been imported: in the right moment, without a trace."""

import importlib
import importlib.util
import inspect
import sys

import pytest

from tfsafe._after_import import AfterImport

PACKAGES = ("lowflow", "highkeras")


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """Watches for two packages of which one imports the other; keeps what it saw."""
    sources = {"lowflow": "ready = True", "highkeras": "import lowflow\nready = True"}
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    seen = []

    def act():
        modules = [sys.modules[name] for name in PACKAGES if name in sys.modules]
        seen.append([each.__name__ for each in modules if hasattr(each, "ready")])

    watch = AfterImport(PACKAGES, act)
    watch.seen = seen
    yield watch
    watch.remove()
    for name in PACKAGES:
        sys.modules.pop(name, None)


def test_it_acts_once_after_the_first_of_the_packages(watch):
    watch.install()
    assert not watch.is_done
    import lowflow

    assert watch.is_done
    assert watch.seen == [["lowflow"]]
    importlib.import_module("highkeras")
    assert watch.seen == [["lowflow"]]
    assert watch not in sys.meta_path
    assert lowflow.ready


def test_it_waits_for_the_package_that_imports_the_other(watch):
    watch.install()
    importlib.import_module("highkeras")
    assert watch.seen == [["lowflow", "highkeras"]]


def test_it_acts_at_once_if_a_package_is_there(watch):
    importlib.import_module("lowflow")
    watch.install()
    assert watch.seen == [["lowflow"]]
    assert watch not in sys.meta_path


def test_looking_for_a_package_is_no_import(watch):
    watch.install()
    assert importlib.util.find_spec("lowflow") is not None
    assert importlib.util.find_spec("nosuchpackage") is None
    assert not watch.is_done


def test_a_package_looks_as_it_always_does(watch):
    watch.install()
    import lowflow

    assert type(lowflow.__loader__).__name__ == "SourceFileLoader"
    assert vars(lowflow.__loader__).keys() == {"name", "path"}
    assert inspect.getsource(lowflow).strip() == "ready = True"


def test_an_import_that_fails_may_be_tried_again(watch, tmp_path):
    (tmp_path / "lowflow.py").write_text("raise ValueError('half')")
    watch.install()
    with pytest.raises(ValueError, match="half"):
        importlib.import_module("lowflow")
    assert not watch.is_done
    # Of another length, so that Python sees the change.
    (tmp_path / "lowflow.py").write_text("ready = True")
    importlib.import_module("lowflow")
    assert watch.seen == [["lowflow"]]


def test_a_package_that_is_not_installed_is_not_found(watch, tmp_path):
    (tmp_path / "lowflow.py").unlink()
    importlib.invalidate_caches()
    watch.install()
    with pytest.raises(ModuleNotFoundError, match="No module named 'lowflow'"):
        importlib.import_module("lowflow")
    assert not watch.is_done


def test_finders_of_an_old_kind_are_passed_over(watch, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [object(), *sys.meta_path])
    watch.install()
    sys.meta_path.remove(next(each for each in sys.meta_path if type(each) is object))
    monkeypatch.setattr(sys, "meta_path", [watch, object(), *sys.meta_path[1:]])
    assert watch.find_spec("lowflow") is not None


def test_what_the_action_raises_comes_out_of_the_import(watch):
    def refuse():
        raise RuntimeError("not here")

    watch._action = refuse
    watch.install()
    with pytest.raises(RuntimeError, match="not here"):
        importlib.import_module("lowflow")
