"""Check that banned names, banned phrases and non-imperative docstrings only become fewer.

``python -m tool_scripts.check_style [--lower]``

Each count has a recorded ceiling in ``style_counts.json``. A higher count fails; a lower one fails too
until ``--lower`` records it, so a ceiling can only fall.

Counted are the ``*.py`` and ``*.md`` files that git tracks or would add, without those under ``SKIPPED``.
A name counts as a whole word in any case; underscores and the capitals of CamelCase are word boundaries,
and the plural counts too: ``player_handle``, ``PlayerHandle`` and ``players`` are one occurrence each.
A phrase counts across line breaks. The names in ``EXEMPT``, which clients and supervisors rely on, do not
count.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNTS = "tool_scripts/style_counts.json"
LOWER = "python -m tool_scripts.check_style --lower"
SKIPPED = ("results/", "datasets/", "tool_scripts/check_style.py", "tests/tool_scripts/test_check_style.py")

EXEMPT = (
    "ARMED_PLAYERS",  # environment variable
    "adaexplore_judge_armed_players",  # metric
    "{_PREFIX}armed_players",
    "`armed_players`",
    '"witness"',  # key of runtime_stats on the wire
    "`witness`",
)

# the standard term to use instead; empty where it depends on the place
NAMES = {
    "arena": "shared tensors",
    "contest": "config sweep",
    "course": "",
    "donor": "",
    "keeper": "supervisor",
    "nursery": "fork client",
    "player": "candidate process",
    "referee": "evaluator",
    "rider": "",
    "room": "sandbox (of a process) or space (of memory)",
    "witness": "",
}

# "(s)" is optional, "a/b" is a choice
PHRASES = {
    "bears out": "confirms",
    "by itself alone": "",
    "came to its end": "exited",
    "comes to": "becomes",
    "has it that": "",
    "is held against": "is compared with",
    "nobody is": "is empty",
    "of which no": "",
    "one after another's": "",
    "stands in/for it": "is inside",
    "tell(s) how/whether/the/with": "report",
    "to be had": "",
    "whoever": "any client",
    "word to go": "GO",
}

DOCSTRINGS = "D401"

_SHOWN = 5
_GAP = r"[\s#>]+"  # between words of a phrase: blanks, and what begins a line of a comment or a quotation


@dataclass(frozen=True)
class Banned:
    """One thing that is counted.

    Attributes:
        key: its name in the counts file.
        instead: the words to use, empty where there is no single answer.
        places: ``file:line`` of each occurrence, recently changed files first.
    """

    key: str
    instead: str
    places: tuple[str, ...]

    def complaint(self, ceiling: int) -> str | None:
        """Return one line on how the count differs from the ceiling, None where it does not."""
        found = f"{self.key}: {len(self.places)} found, {ceiling} recorded"
        if len(self.places) > ceiling:
            instead = f"; use {self.instead} instead" if self.instead else ""
            more = ", ..." if len(self.places) > _SHOWN else ""
            return f"{found}{instead}: {', '.join(self.places[:_SHOWN])}{more}"
        if len(self.places) < ceiling:
            return f"{found}; lower the ceiling: {LOWER}"
        return None


def check(root: Path, lower: bool = False) -> list[str]:
    """Compare the counts of the repository at ``root`` with its ceilings.

    Args:
        root: a git work tree with a counts file.
        lower: first write the counts that are below their ceiling into the counts file.

    Returns:
        One line for each count that differs from its ceiling.
    """
    counts = root / COUNTS
    recorded: Mapping[str, int] = json.loads(counts.read_text(encoding="utf-8"))
    found = count(root)
    ceilings = {each.key: recorded.get(each.key, 0) for each in found}
    if lower:
        ceilings = {each.key: min(len(each.places), ceilings[each.key]) for each in found}
        counts.write_text(json.dumps(ceilings, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return [line for each in found if (line := each.complaint(ceilings[each.key])) is not None]


def count(root: Path) -> list[Banned]:
    """Find everything that is counted in the files of the repository at ``root``."""
    files = _files(root)
    texts = {file: _without_exempt((root / file).read_text(encoding="utf-8")) for file in files}
    sources = [file for file in files if file.endswith(".py")]
    return [
        *(Banned(name, instead, _places(_name_pattern(name), texts)) for name, instead in NAMES.items()),
        *(Banned(each, instead, _places(_phrase_pattern(each), texts)) for each, instead in PHRASES.items()),
        Banned(DOCSTRINGS, "an imperative first line", _non_imperative(root, sources)),
    ]


def _files(root: Path) -> list[str]:
    """List the counted files, recently changed ones first."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py", "*.md"]
    listed = _output(command, root).split("\0")
    files = {file for file in listed if file and not file.startswith(SKIPPED) and (root / file).is_file()}
    return sorted(files, key=lambda file: (-(root / file).stat().st_mtime, file))


def _without_exempt(text: str) -> str:
    pattern = "|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in EXEMPT)
    return re.sub(pattern, " ", text)


def _name_pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?<![a-zA-Z])(?i:{name}s?)|{name.capitalize()}s?)(?![a-z])")


def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    words = [rf"(?:{word.replace('(s)', 's?').replace('/', '|')})" for word in phrase.split()]
    return re.compile(rf"\b{_GAP.join(words)}\b", re.IGNORECASE)


def _places(pattern: re.Pattern[str], texts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        f"{file}:{text.count(chr(10), 0, match.start()) + 1}"
        for file, text in texts.items()
        for match in pattern.finditer(text)
    )


def _non_imperative(root: Path, sources: Sequence[str]) -> tuple[str, ...]:
    """Ask ruff for docstrings whose first line is not imperative."""
    if not sources:
        return ()
    command = [sys.executable, "-m", "ruff", "check", "--select", DOCSTRINGS, "--output-format", "json"]
    output = _output([*command, "--exit-zero", *sources], root)
    found = [each for each in json.loads(output) if each["code"] == DOCSTRINGS]
    places = [(str(Path(each["filename"]).relative_to(root)), each["location"]["row"]) for each in found]
    order = {file: number for number, file in enumerate(sources)}
    return tuple(f"{file}:{line}" for file, line in sorted(places, key=lambda place: order[place[0]]))


def _output(command: Sequence[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(argv: list[str] | None = None) -> int:
    """Print the counts that differ; exit code 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lower", action="store_true", help="record the counts that have fallen; raise none")
    lines = check(ROOT, parser.parse_args(argv).lower)
    sys.stdout.write("".join(line + "\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
