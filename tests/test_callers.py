"""The list of names that nobody in the product calls has no name that has gone."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = ROOT / ".ci" / "called_elsewhere.py"


def test_every_name_of_the_list_is_one_of_the_product() -> None:
    if not LIST.exists():  # where the tests were copied away from the sources
        return
    sources = [*ROOT.glob("hoodie_py/**/*.py"), *ROOT.glob("storage/**/*.py"), ROOT / "pyspark_hoodie.py"]
    words = set(re.findall(r"\w+", "\n".join(path.read_text() for path in sources)))
    listed = re.findall(r"^_\.(\w+)$", LIST.read_text(), re.MULTILINE)
    assert listed
    assert [name for name in listed if name not in words] == []
