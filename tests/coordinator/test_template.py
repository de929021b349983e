"""`odf init` lays down a whole workspace or nothing, and touches nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.template import write_template
from odfpy.errors import AlreadyExists, NotFound, OdfError
from odfpy.settings.sections import SETTINGS

REPOSITORY = Path(__file__).resolve().parents[2]


def test_lays_down_every_file_of_the_template_and_the_empty_folders(tmp_path: Path):
    write_template(tmp_path)
    template = REPOSITORY / "workspace_template"
    files = [path.relative_to(template) for path in template.rglob("*") if path.is_file()]
    assert Path(".odf/config.yaml") in files
    for file in files:
        assert (tmp_path / file).read_bytes() == (template / file).read_bytes()
    folders = {path.name for path in (tmp_path / ".odf").iterdir() if path.is_dir()}
    assert folders == {"datasets", "repos", "cache", "run", "keys", "approved"}


def test_result_is_a_workspace_of_the_current_layout(tmp_path: Path):
    write_template(tmp_path)
    assert Storage.find(tmp_path).datasets() == []


def test_config_is_only_comments_so_that_defaults_hold(tmp_path: Path):
    write_template(tmp_path)
    assert yaml.safe_load((tmp_path / ".odf" / "config.yaml").read_text()) is None


def test_config_names_every_setting_and_its_default():
    _, commented = (REPOSITORY / "workspace_template" / ".odf" / "config.yaml").read_text().split("\n\n")
    groups = yaml.safe_load("\n".join(line.removeprefix("#") for line in commented.splitlines()))
    shown = {f"{group}.{name}": value for group, values in groups.items() for name, value in values.items()}
    defaults = {key: setting.default for key, setting in SETTINGS.items()}
    assert shown.keys() == defaults.keys()
    assert {key: shown[key] for key, value in defaults.items() if value is not None} == {
        key: value for key, value in defaults.items() if value is not None
    }


def test_setting_a_value_keeps_the_comments(tmp_path: Path):
    write_template(tmp_path)
    file = tmp_path / ".odf" / "config.yaml"
    before = file.read_text()
    config = Config.load(tmp_path)
    config.set("fetch.timeout", "5")
    assert file.read_text() == before + "fetch:\n  timeout: 5\n"
    config.set("fetch.timeout", None)
    assert file.read_text() == before


def test_keys_are_for_the_owner_alone(tmp_path: Path):
    write_template(tmp_path)
    assert (tmp_path / ".odf" / "keys").stat().st_mode & 0o777 == 0o700


def test_leaves_alone_what_is_in_the_folder(tmp_path: Path):
    (tmp_path / "README.md").write_text("mine")
    write_template(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".odf", "README.md"]


def test_a_second_time_is_refused_and_changes_nothing(tmp_path: Path):
    write_template(tmp_path)
    (tmp_path / ".odf" / "config.yaml").write_text("# edited\n")
    with pytest.raises(AlreadyExists, match="already a workspace"):
        write_template(tmp_path)
    assert (tmp_path / ".odf" / "config.yaml").read_text() == "# edited\n"
    assert [path.name for path in tmp_path.iterdir()] == [".odf"]


def test_a_missing_folder_is_an_error(tmp_path: Path):
    with pytest.raises(NotFound, match="no folder"):
        write_template(tmp_path / "missing")


def test_a_folder_that_cannot_be_written_to_is_an_error():
    with pytest.raises(OdfError, match="Cannot create a workspace in /proc/self: "):
        write_template(Path("/proc/self"))  # where not even root may make files
