import os
import time
from pathlib import Path

from online_judge.queue.store import UNUSED_DAYS, Store, remove_unused


def test_old_state_of_other_ports_is_removed(tmp_path: Path) -> None:
    own, old, used, new = (tmp_path / f"{port}.sqlite" for port in (1, 2, 3, 4))
    for path in (own, old, new):
        Store(path).close()
    judge = Store(used)
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86400
    for path in tmp_path.iterdir():
        if not path.name.startswith("4"):
            os.utime(path, (long_ago, long_ago))
    remove_unused(tmp_path, keep=own)
    judge.close()
    assert {path.name for path in tmp_path.glob("*.sqlite")} == {own.name, used.name, new.name}
    assert not list(tmp_path.glob("2.sqlite*"))


def test_missing_folder_is_no_error(tmp_path: Path) -> None:
    remove_unused(tmp_path / "none", keep=tmp_path / "none" / "1.sqlite")
