"""``info``, ``convert`` and ``plot``: what they print and make, and their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import rlmemory as rlm
from rlmemory.__main__ import main
from rlmemory.files import formats, memory_from, read_d4rl, read_minari, write_d4rl, write_minari
from rlmemory.files.formats import FORMATS, format_for, format_of

from .made_records import assert_same, leftovers, small

pytest.importorskip("h5py")


@pytest.fixture
def files(tmp_path, monkeypatch):
    write_minari(tmp_path / "set", small())
    write_d4rl(tmp_path / "flat.hdf5", small())
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- info -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "title"),
    [("set", "Minari"), ("set/data", "Minari"), ("set/data/main_data.hdf5", "Minari"), ("flat.hdf5", "D4RL")],
)
def test_info_recognises_what_a_file_is(name, title, files, capsys):
    assert main(["info", name]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{name}: {title}")
    assert "experiences  12 in" in out
    assert "episodes     3: 2 terminated, 1 truncated, 0 running" in out
    assert "length       4 to 4, mean 4" in out
    assert err == ""


def test_info_for_programs_says_what_the_memory_says(files, capsys):
    assert main(["info", "flat.hdf5", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    statistics = memory_from(small()).statistics()
    assert facts["channels"]["reward"]["mean"] == statistics["channels"]["reward"]["mean"]
    assert facts["channels"]["observation"]["max"] == statistics["channels"]["observation"]["max"]
    assert facts["return"] == {"min": 4.0, "mean": 4.0, "max": 4.0}


def test_info_of_odd_numbers_is_still_json(tmp_path, capsys):
    experience = small()._replace(
        reward=np.array([np.inf, np.nan] * 6), action=np.full(12, 1j), next_observation=np.zeros(12)
    )
    write_d4rl(tmp_path / "x.hdf5", experience)
    assert main(["info", str(tmp_path / "x.hdf5"), "--json"]) == 0
    json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert main(["info", str(tmp_path / "x.hdf5")]) == 0


def test_files_without_rows(tmp_path, capsys):
    experience = rlm.files.read_simulation_log(np.zeros((1, 3)), np.zeros((0, 2)), np.zeros(0))
    write_d4rl(tmp_path / "x.hdf5", experience)
    assert main(["info", str(tmp_path / "x.hdf5")]) == 0
    assert "experiences  0" in capsys.readouterr().out
    assert main(["plot", str(tmp_path / "x.hdf5"), "-o", str(tmp_path / "x.png")]) in (1, 3)


# ---- convert --------------------------------------------------------------------------------------------------------


def test_convert_there_and_back(files, capsys):
    assert main(["convert", "set", "other.h5"]) == 0
    assert capsys.readouterr().out == "set (Minari data set) -> other.h5 (D4RL data set): 12 experiences\n"
    assert main(["convert", "other.h5", "back"]) == 0
    assert_same(read_d4rl("other.h5"), small())
    assert_same(read_minari("back"), small())


def test_convert_to_the_format_that_is_named(files):
    assert main(["convert", "flat.hdf5", "one.hdf5", "--to", "minari"]) == 0
    assert format_of("one.hdf5").name == "minari"
    assert_same(read_minari("one.hdf5"), small())


def test_convert_replaces_only_when_told_to(files, capsys):
    before = (files / "flat.hdf5").read_bytes()
    assert main(["convert", "set", "flat.hdf5"]) == 1
    assert "--force" in capsys.readouterr().err
    assert (files / "flat.hdf5").read_bytes() == before
    assert main(["convert", "set", "flat.hdf5", "--force"]) == 0
    assert main(["convert", "flat.hdf5", "flat.hdf5", "--force"]) == 0
    assert_same(read_d4rl("flat.hdf5"), small())
    assert leftovers(files) == []


def test_convert_says_early_that_it_knows_no_such_format(files, capsys):
    assert main(["convert", "missing", "x.docx"]) == 1
    assert "no format has the suffix '.docx'" in capsys.readouterr().err


# ---- plot -----------------------------------------------------------------------------------------------------------


def picture(path):
    image = pytest.importorskip("matplotlib.image")
    return image.imread(path)[..., :3]


@pytest.mark.parametrize("name", ["set", "flat.hdf5"])
def test_plot_makes_a_picture_that_is_not_blank(name, files, capsys):
    pytest.importorskip("matplotlib")
    assert main(["plot", name, "--output", "out.png"]) == 0
    assert capsys.readouterr().out == "out.png\n"
    pixels = picture("out.png")
    assert min(pixels.shape[:2]) > 400
    half = [size // 2 for size in pixels.shape[:2]]
    for rows in (slice(None, half[0]), slice(half[0], None)):
        for columns in (slice(None, half[1]), slice(half[1], None)):
            panel = pixels[rows, columns]
            blue = (panel[..., 2] - panel[..., 0] > 0.3).sum()
            assert blue > 50, "each panel has something drawn in the first colour"
    assert leftovers(files) == []


def test_plot_by_default_is_named_after_the_file(files):
    pytest.importorskip("matplotlib")
    assert main(["plot", "flat.hdf5"]) == 0
    assert (files / "flat.png").read_bytes().startswith(b"\x89PNG")


def test_plot_of_many_channels_and_odd_numbers(tmp_path):
    pytest.importorskip("matplotlib")
    pixels = np.random.default_rng(0).integers(0, 256, (6, 20, 20), np.uint8)
    log = rlm.files.read_simulation_log(
        {"image": pixels, "bad": np.full((6, 2), np.nan)}, np.zeros(5), np.array([np.inf, 1, 2, 3, np.nan])
    )
    write_minari(tmp_path / "set", log)
    assert main(["plot", str(tmp_path / "set"), "-o", str(tmp_path / "x.png")]) == 0
    assert picture(tmp_path / "x.png").std() > 0.01


def test_plot_loads_no_window_system(files):
    pytest.importorskip("matplotlib")
    code = (
        "import sys; from rlmemory.__main__ import main; main(['plot', 'flat.hdf5']); "
        "print([name for name in ('matplotlib.pyplot', 'tkinter', 'numba') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=files)
    assert result.stdout.splitlines()[-1] == "[]"


# ---- exit codes and messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["info", "plot"])
def test_what_cannot_be_read_is_status_1_and_one_line(command, files, capsys):
    if command == "plot":
        pytest.importorskip("matplotlib")
    (files / "cut.hdf5").write_bytes((files / "flat.hdf5").read_bytes()[:900])
    (files / "noise.bin").write_bytes(bytes(range(256)))
    for name, said in (("nowhere", "No such file"), ("cut.hdf5", "damaged"), ("noise.bin", "none of the known")):
        assert main([command, name]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("rlmemory: ")
        assert said in err
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["info"], ["convert", "a"], ["plot"], ["convert", "a", "b", "--to", "docx"], ["info", "a", "--nonsense"]],
)
def test_wrong_usage_is_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "extra"), [("h5py", "hdf5"), ("matplotlib", "plot")])
def test_a_missing_package_is_status_3_and_named_with_its_extra(module, extra, files, monkeypatch, capsys):
    if module == "h5py":
        pytest.importorskip("matplotlib")
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["plot", "flat.hdf5"]) == 3
    assert f"rlmemory[{extra}]" in capsys.readouterr().err


def test_a_reader_closes_the_pipe(files):
    code = "import sys; from rlmemory.__main__ import main; sys.exit(main(['info', 'set']))"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=files
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in ("info", "convert", "plot", "demo"))


def test_every_format_is_found_by_its_name_and_suffix():
    for one in FORMATS:
        assert format_for("x", one.name) is one
        for suffix in one.suffixes:
            assert format_for(f"x{suffix}") is one


def test_a_format_is_one_line(files, monkeypatch, capsys):
    """A new reader is found by what a file looks like; one that is not there is named."""
    (files / "x.new").write_bytes((files / "flat.hdf5").read_bytes())
    (files / "x.later").touch()
    lines = [
        formats.Format(suffix[1:], title, lambda path, suffix=suffix: path.suffix == suffix, (suffix,), reader, reader)
        for suffix, title, reader in (
            (".new", "new format", "files.d4rl:read_d4rl"),
            (".later", "later format", "files.later:read_later"),
            (".other", "other format", "files.d4rl:read_other"),
        )
    ]
    monkeypatch.setattr(formats, "FORMATS", (*lines, *formats.FORMATS))
    assert main(["info", "x.new"]) == 0
    assert "x.new: new format" in capsys.readouterr().out
    assert main(["info", "x.later"]) == 3
    assert "x.later: a later format, which this version of rlmemory cannot read" in capsys.readouterr().err
    assert main(["convert", "set", "x.other"]) == 3
    assert "x.other: a other format, which this version of rlmemory cannot write" in capsys.readouterr().err


def test_a_bar_where_somebody_looks(tmp_path, monkeypatch, capsys):
    tqdm = pytest.importorskip("tqdm")
    calls = []
    whole = tqdm.tqdm

    def loud(items, **options):
        calls.append(options)
        return whole(items, **{**options, "disable": False})

    monkeypatch.setattr(tqdm, "tqdm", loud)
    write_minari(tmp_path / "set", small())
    assert main(["info", str(tmp_path / "set")]) == 0
    assert "reading episodes" in capsys.readouterr().err
    assert calls[0]["disable"] is None, "tqdm asks whether it is a terminal"
    assert main(["info", str(tmp_path / "set"), "--no-progress"]) == 0
    assert len(calls) == 1
