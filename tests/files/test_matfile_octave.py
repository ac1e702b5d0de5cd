"""GNU Octave as the client: it opens what we write, and what it writes comes in equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from matlab.test_octave import assert_concatenated, assert_elements, buffer_for, load, two_by_one_and_one

import matlab_compat as mc
import rlmemory as rlm

from .matsupport import OCTAVE, mixed, needs_h5py, needs_octave, octave

CASES = sorted(path.stem for path in OCTAVE.glob("oracle_*.mat"))
FORMS = {"none": "ex", "batch": "batch", "sequence": "sequence"}


# ---- what Octave wrote comes in -------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["ex", "batch", "sequence"])
@pytest.mark.parametrize("case", CASES)
def test_every_form_of_octave_fills_a_buffer(case: str, variable: str, tmp_path: Path) -> None:
    file = load(case)
    buffer = buffer_for(file["ex"], file["spec"])
    scipy.io.savemat(tmp_path / "x.mat", {variable: file[variable]})  # alone: the fixture has all three
    mc.loadExperiences(tmp_path / "x.mat", buffer)
    assert_concatenated(buffer, "batch", file["batch"])
    assert_concatenated(buffer, "sequence", file["sequence"])
    assert_elements(buffer, file["ex"])


@pytest.mark.parametrize("name", ["none_v7", "none_v6", "none_row_v7", "batch_v7", "batch_v6", "sequence_v7",
                                  "sequence_v6"])  # fmt: skip
def test_the_same_ten_experiences_come_in_from_every_file(name: str) -> None:
    buffer = two_by_one_and_one()
    mc.loadExperiences(OCTAVE / f"exp_{name}.mat", buffer)
    assert_elements(buffer, load("exp_none_v7")["experience"])


@pytest.mark.parametrize("version", ["v6", "v7"])
def test_one_and_none_come_in(version: str) -> None:
    for variable, count in (("expOne", 1), ("batch1", 1), ("expEmpty", 0), ("expEmpty01", 0), ("expEmpty10", 0)):
        buffer = two_by_one_and_one()
        rlm.files.append_mat(OCTAVE / f"exp_edge_{version}.mat", buffer.memory, variable=variable)
        assert buffer.Length == count
        if count:
            assert_elements(buffer, load("exp_edge_v7")["expOne" if variable == "expOne" else "batch1"])


def test_images_come_in_as_a_struct_array_and_as_a_batch() -> None:
    specs = (rlm.NumericSpec((4, 3, 2), "uint8"), rlm.NumericSpec((3,), "float32")), rlm.NumericSpec(())
    a, b = (rlm.files.read_mat(OCTAVE / "exp_image_v7.mat", *specs, variable=name) for name in ("ximg", "xbatch"))
    for x, y in zip([*a.observation, a.action, a.reward], [*b.observation, b.action, b.reward], strict=True):
        np.testing.assert_array_equal(x, y, strict=True)
    assert set(a.truncated.tolist()) == {True, False}


def test_doubles_that_were_stored_as_bytes_are_doubles() -> None:
    reward = mc.load(OCTAVE / "double_as_uint8_v6.mat").Reward
    np.testing.assert_array_equal(reward, np.array([[1.0, 2.0, 3.0]]), strict=True)


def assert_value(value: Any, truth: dict[str, Any], place: str) -> None:
    """`truth`: class, size, and the data in column-major order, as Octave wrote them down."""
    if "re" in truth:
        assert np.asarray(value.toarray() if hasattr(value, "toarray") else value).ravel(order="F").tolist() == [
            complex(re, im) for re, im in zip(np.ravel(truth["re"]), np.ravel(truth["im"]), strict=True)
        ]
        return
    data = truth["data"] if isinstance(truth["data"], list) else [truth["data"]]
    size = tuple(truth["size"])
    if truth["class"] == "char":
        assert isinstance(value, (str, np.ndarray)), place
    elif truth["class"] == "cell":
        entries = value.ravel(order="F") if isinstance(value, np.ndarray) else value
        assert len(entries) == np.prod(size), place
        for k, entry in enumerate(entries):
            assert_value(entry, data[k], f"{place}{{{k + 1}}}")
    elif truth["class"] == "struct":
        assert len(value) == np.prod(size), place
        for one, fields in zip(value, data, strict=False):
            for name, inside in fields.items():
                assert_value(getattr(one, name), inside, f"{place}.{name}")
    elif not hasattr(value, "toarray"):
        classes = {"double": "float64", "single": "float32", "logical": "bool"}
        assert value.shape == size, place
        assert value.dtype == classes.get(truth["class"], truth["class"]), place
        np.testing.assert_array_equal(value.ravel(order="F").astype(float), np.array(data, float), err_msg=place)
    else:
        assert value.toarray().ravel(order="F").tolist() == np.array(data, float).tolist()


@pytest.mark.parametrize("version", ["v6", "v7"])
def test_a_value_of_every_class_is_loaded_as_octave_has_it(version: str) -> None:
    truth = json.loads((OCTAVE / "truth_types.json").read_text())
    types = mc.load(OCTAVE / f"types_{version}.mat").types
    fields = truth["data"][0] if isinstance(truth["data"], list) else truth["data"]
    assert set(mc.fieldnames(types)) == set(fields)
    for name, inside in fields.items():
        assert_value(getattr(types, name), inside, name)


# ---- what we write is opened by Octave ------------------------------------------------------------------------------


@needs_octave
@pytest.mark.parametrize("version", ["v6", "v7"])
def test_octave_finds_its_own_concatenation_in_what_we_write(tmp_path: Path, version: str) -> None:
    script = []
    for case in CASES:
        file = load(case)
        buffer = buffer_for(file["ex"], file["spec"])
        mc.append(buffer, file["ex"])
        (tmp_path / f"{case}.mat").write_bytes((OCTAVE / f"{case}.mat").read_bytes())
        script.append(f"o = load('{case}.mat');")
        for mode, variable in FORMS.items():
            mc.saveExperiences(tmp_path / f"{case}_{mode}.mat", buffer, ConcatenateMode=mode, Version=version)
            mc.save(tmp_path / f"{case}_{mode}_e.mat", f"-{version}", e=mc.allExperiences(buffer, ConcatenateMode=mode))
            script += [
                f"a = load('{case}_{mode}.mat').experience; b = load('{case}_{mode}_e.mat').e;",
                "assert(isstruct(a) && iscell(a(1).Observation) && isnumeric(a(1).Reward));",
                f"same(a, o.{variable}, '{case} {mode}'); same(b, o.{variable}, '{case} {mode}, saved');",
            ]
    octave(tmp_path, "\n".join(script))


@needs_octave
def test_octave_to_us_and_back_is_equal(tmp_path: Path) -> None:
    octave(tmp_path, """
      rand('twister', 7);
      for i = 1:9
        e(i,1).Observation = {rand(4,3), uint8(255*rand(8,6,3)), single(rand(1,4))};
        e(i,1).Action = {rand(2,1), int32(i)};
        e(i,1).NextObservation = {rand(4,3), uint8(255*rand(8,6,3)), single(rand(1,4))};
        e(i,1).Reward = rand; e(i,1).IsDone = mod(i,3);
      end
      values.text = 'two words'; values.list = {1, 'b', {true, []}; single(2), int8(3), rand(2,0)};
      values.z = [1+2i 3]; values.flags = logical([1 0; 0 1]); values.none = struct('a', {}); values.e = e;
      save('-v7', 'a.mat', 'e', 'values');
    """)  # fmt: skip
    loaded = mc.load(tmp_path / "a.mat")
    spec = mc.rlNumericSpec
    observation = [spec([4, 3]), spec([8, 6, 3], DataType="uint8"), spec([1, 4], DataType="single")]
    buffer = mc.rlReplayMemory(observation, [spec([2, 1]), spec([1, 1], DataType="int32")], 9)
    mc.append(buffer, loaded.e)
    mc.save(tmp_path / "b.mat", e=loaded.e)
    mc.saveExperiences(tmp_path / "c.mat", buffer, ConcatenateMode="none", Variable="e")
    mc.saveExperiences(tmp_path / "d.mat", buffer)
    octave(tmp_path, """
      load('a.mat'); same(load('b.mat').e, e, 'saved'); same(load('c.mat').e, e, 'through a buffer');
      d = load('d.mat').experience;
      for k = 1:3
        parts = arrayfun(@(x) x.NextObservation{k}, e, 'UniformOutput', false);
        same(d.NextObservation{k}, cat(3 + (k == 2), parts{:}), 'batch');
      end
      same(d.Reward, [e.Reward], 'reward'); same(d.IsDone, [e.IsDone], 'done');
    """)  # fmt: skip


@needs_octave
def test_values_of_every_class_go_to_octave(tmp_path: Path) -> None:
    mc.save(
        tmp_path / "x.mat",
        text="two words", number=3, flag=True, cell=[np.zeros((2, 1)), "b", [1.5]], z=np.array([[1 + 2j, 3]]),
        half=np.ones((2, 2), "f2"), small=np.int8(5), names=mc.struct(a=1, b=mc.struct(c="d")),
        labelled=mc.dlarray(np.ones((2, 3)), "CB"),
        many=mc.hcat(mc.struct(a=1), mc.struct(a="x")), empty=mc.allExperiences(two_by_one_and_one()),
    )  # fmt: skip
    octave(tmp_path, """
      load('x.mat');
      same(text, 'two words', 'text'); same(number, 3, 'number'); same(flag, true, 'flag'); same(z, [1+2i 3], 'z');
      same(cell, {zeros(2,1), 'b', {1.5}}, 'cell'); same(half, ones(2,2,'single'), 'half'); same(small, int8(5), 's');
      same(names, struct('a', 1, 'b', struct('c', 'd')), 'names'); same(labelled, ones(2,3), 'labelled');
      same(many, struct('a', {1, 'x'}), 'many'); assert(isstruct(empty) && isempty(empty));
    """)  # fmt: skip


@needs_octave
def test_octave_opens_the_form_of_cells_and_what_stands_beside(tmp_path: Path) -> None:
    memory = mixed(5)
    for form in ("cell", "batch"):
        rlm.files.write_mat(tmp_path / f"{form}.mat", memory, form=form, variable="e")
    octave(tmp_path, """
      c = load('cell.mat'); b = load('batch.mat');
      assert(iscell(c.e) && isequal(size(c.e), [5 1]) && isstruct(c.e{1}));
      for i = 1:5
        same(c.e{i}.Observation{2}, b.e.Observation{2}(:,:,:,i), 'image');
        same(c.e{i}.Action{1}, b.e.Action{1}(:,:,i), 'force'); same(c.e{i}.IsDone, b.e.IsDone(i), 'done');
      end
      same(class(b.e.Observation{3}), 'logical', 'class'); same(class(b.e.Action{1}), 'single', 'class');
      assert(isequal(size(b.dataSourceID), [1 5]) && isequal(size(b.extra.state), [3 1 5]));
      same(class(b.extra.state), 'single', 'class'); assert(isequal(size(b.extra.cost), [1 1 5]));
    """)  # fmt: skip


@needs_octave
@needs_h5py
def test_octave_reads_the_plain_matrices_of_version_7_3(tmp_path: Path) -> None:
    m = np.arange(24.0).reshape(2, 3, 4)
    for version in ("v7", "v7.3"):
        mc.save(tmp_path / f"{version}.mat", f"-{version}", m=m, row=np.arange(5.0), n=3.5)
    octave(tmp_path, "a = load('v7.mat'); b = load('v7.3.mat'); same(b.m, a.m, 'm'); same(b.row, a.row, 'row');"
                     "same(b.n, 3.5, 'n'); assert(b.m(2,3,4) == 23);")  # fmt: skip
