"""Put the files that commands read by default into the wheel, below ``adaexplore/bundled``."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

BUNDLED = ("config", "datasets/quickstart", "datasets/KernelBench_syn", "results/memory")


class BuildWithData(build_py):
    """Copies the folders ``BUNDLED`` after the packages."""

    def run(self) -> None:
        """Build the packages, then copy."""
        super().run()
        if self.editable_mode:
            return
        unwanted = shutil.ignore_patterns("__pycache__", ".synth")
        for folder in BUNDLED:
            to = Path(self.build_lib) / "adaexplore" / "bundled" / folder
            shutil.copytree(folder, to, dirs_exist_ok=True, ignore=unwanted)


setup(cmdclass={"build_py": BuildWithData})
