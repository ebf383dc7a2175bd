"""Check that banned names and banned phrases occur nowhere: ``python -m tool_scripts.check_style``.

It searches the ``*.py`` and ``*.md`` files that git tracks or would add, without those under ``SKIPPED``.
A name is found as a whole word in any case; underscores and the capitals of CamelCase are word boundaries,
and the plural counts too: ``player_handle``, ``PlayerHandle`` and ``players`` are one occurrence each.
A phrase is found across line breaks. The names in ``EXEMPT``, which clients and supervisors rely on, are
allowed. Names of tests have at most eight words.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = ("results/", "datasets/", "tool_scripts/check_style.py", "tests/tool_scripts/test_check_style.py")

EXEMPT = (
    "ARMED_PLAYERS",  # environment variable
    "adaexplore_judge_armed_players",  # metric
    "{_PREFIX}armed_players",
    "`armed_players`",
    '"witness"',  # key of runtime_stats on the wire
    "`witness`",
)

# the standard term to use instead; empty if it depends on the place
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

_LONG_TEST = re.compile(r"def test(_[a-z0-9]+){9,}")
_GAP = r"[\s#>]+"  # between words of a phrase: blanks, and the start of a comment line or quotation


def check(root: Path) -> list[str]:
    """Return one line for each place of a banned name or phrase in the git work tree at ``root``."""
    exempt = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in EXEMPT))
    patterns = {
        name: re.compile(rf"(?:(?<![a-zA-Z])(?i:{name}s?)|{name.capitalize()}s?)(?![a-z])") for name in NAMES
    }
    patterns |= {phrase: _phrase_pattern(phrase) for phrase in PHRASES}
    found = []
    for file in _files(root):
        text = exempt.sub(" ", (root / file).read_text(encoding="utf-8"))
        for key, pattern in patterns.items():
            instead = (NAMES | PHRASES)[key]
            advice = f"; use {instead} instead" if instead else ""
            for match in pattern.finditer(text):
                found.append(f"{file}:{_line(text, match)}: {key}{advice}")
        for match in _LONG_TEST.finditer(text):
            found.append(f"{file}:{_line(text, match)}: {match[0]}; use at most eight words")
    return found


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def _files(root: Path) -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py", "*.md"]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    listed = done.stdout.split("\0")
    return sorted(file for file in listed if not file.startswith(SKIPPED) and (root / file).is_file())


def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    words = [rf"(?:{word.replace('(s)', 's?').replace('/', '|')})" for word in phrase.split()]
    return re.compile(rf"\b{_GAP.join(words)}\b", re.IGNORECASE)


def main() -> int:
    lines = check(ROOT)
    sys.stdout.write("".join(line + "\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
