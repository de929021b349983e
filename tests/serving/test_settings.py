"""What can be chosen about a server: settings of its workspace, with the defaults of the server itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.servers.serving import workspace_at

from odfpy.errors import UsageError
from odfpy.serving.settings import ServeSettings
from odfpy.settings.sections import SETTINGS


def test_nothing_set_is_the_default(tmp_path: Path) -> None:
    assert ServeSettings.configured(workspace_at(tmp_path).config) == ServeSettings()


def test_every_setting_of_servers_reaches_them(tmp_path: Path) -> None:
    config = workspace_at(tmp_path).config
    keys = [key for key in SETTINGS if key.startswith("serve.")]
    for number, key in enumerate(keys, start=1):
        config.set(key, str(number))
    found = ServeSettings.configured(config, grace=1000)
    default = ServeSettings(grace=1000)
    changed = {
        getattr(found, name) for name in ServeSettings.__slots__ if getattr(found, name) != getattr(default, name)
    }
    assert changed == set(range(1, len(keys) + 1))
    assert (found.query_timeout, found.max_queries_each, found.grace) == (1, 4, 1000)


def test_limits_are_at_least_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"serve\.runningQueries is a whole number, at least 1, not '0'"):
        workspace_at(tmp_path).config.set("serve.runningQueries", "0")
