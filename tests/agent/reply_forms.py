"""Forms of replies that models write, and what the agent takes from each.

``FORMS`` holds one row per form. A step ``large`` asks for a file, ``small`` for edits of ``PARENT``; ``small
repair`` and ``large repair`` answer a repair, of edits that fail and of the file ``BROKEN``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal

Step = Literal["large", "small", "small repair", "large repair"]


@dataclass(frozen=True)
class Form:
    """One form of a reply.

    Attributes:
        taken: the candidate that it holds; None if it holds none, so that it is sent back if it has any text
            besides reasoning.
        rewritten: whether it replaces the whole kernel of a small step.
    """

    name: str
    step: Step
    reply: str
    taken: str | None
    rewritten: bool = False


IMPORTS = """import torch
import torch.nn as nn
import triton
import triton.language as tl
"""
KERNEL = """@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n

    tl.store(y + at, tl.load(x + at, mask=inside) * 3 + 1, mask=inside)
"""
MODEL = """class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
"""
FILE = f"{IMPORTS}\n\n{KERNEL}\n\n{MODEL}"
DRAFT = FILE.replace(" * 3 + 1", " * 3")
PARENT = FILE.replace("128", "64")
EDITED = PARENT.replace("BLOCK=64", "BLOCK=256")
BROKEN = FILE.replace("BLOCK=128", "BLOCK=missing")
REFERENCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 3 + 1


def get_inputs():
    return [torch.rand(64)]


def get_init_inputs():
    return []
"""
CALL = "model = ModelNew().cuda()\nprint(model(torch.rand(64).cuda()))\n"
INSTALL = "pip install triton\n"
TOP = f"{IMPORTS}\n\n{KERNEL}"
BOTTOM = f"{IMPORTS}\n\n{MODEL}"
STUB = "class ModelNew(nn.Module):\n    ...\n"
LAUNCH = "        scale[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)"
NEW_LAUNCH = LAUNCH.replace("BLOCK=64", "BLOCK=256")


def fenced(source: str, info: str = "python", ticks: str = "```") -> str:
    return f"{ticks}{info}\n{source}{ticks}\n"


def pair(old: str, new: str, number: int = 1) -> str:
    return f"<old_str_{number}>\n{old}\n</old_str_{number}>\n<new_str_{number}>\n{new}\n</new_str_{number}>\n"


def indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}" if line.strip() else line for line in text.splitlines(keepends=True))


EDIT = pair(LAUNCH, NEW_LAUNCH)
MISSING_EDIT = pair(LAUNCH.replace("64", "1024"), NEW_LAUNCH)
DIFF = f"""--- a/kernel.py
+++ b/kernel.py
@@ -20,5 +20,5 @@
         y = torch.empty_like(x)
-{LAUNCH}
+{NEW_LAUNCH}
         return y
"""
PLAN = f"I could start from\n{fenced(DRAFT)}but that forgets the + 1.\n"
ANSWER = fenced(FILE)
ANSWER_MODEL = fenced(MODEL)


def _reasoning() -> Iterator[Form]:
    marks = {
        "think": ("<think>\n", "</think>\n"),
        "thinking": ("<thinking>\n", "</thinking>\n"),
        "thought": ("<thought>\n", "</thought>\n"),
        "reasoning": ("<reasoning>\n", "</reasoning>\n"),
        "think in capitals": ("<THINK>\n", "</THINK>\n"),
        "square brackets": ("[THINK]", "[/THINK]\n"),
        "seed": ("<seed:think>\n", "</seed:think>\n"),
        "bars": ("<|begin_of_thought|>\n", "<|end_of_thought|>\n"),
        "triangles": ("◁think▷", "◁/think▷"),
        "details": ('<details type="reasoning" done="true">\n<summary>Thought</summary>\n', "</details>\n"),
        "channels": (
            "<|channel|>analysis<|message|>",
            "<|end|><|start|>assistant<|channel|>final<|message|>",
        ),
        "channels without their marks": ("analysis", "assistantfinal"),
        "no opening mark": ("", "</think>\n"),
        "no opening mark, seed": ("", "</seed:think>\n"),
        "no opening mark, square": ("", "[/THINK]\n"),
    }
    for name, (opening, closing) in marks.items():
        yield Form(f"draft in reasoning: {name}", "large", f"{opening}{PLAN}{closing}{ANSWER}", FILE)
    commentary = "<|start|>assistant<|channel|>commentary<|message|>Now the file.<|end|>"
    final = f"<|start|>assistant<|channel|>final <|constrain|>text<|message|>{ANSWER}<|return|>"
    channels = f"<|channel|>analysis<|message|>{PLAN}<|end|>{commentary}{final}"
    yield Form("several channels and an end token", "large", channels, FILE)
    submit = "<|start|>assistant<|channel|>commentary to=functions.submit <|constrain|>json<|message|>"
    called = f"<|channel|>analysis<|message|>{PLAN}<|end|>{submit}{json.dumps({'code': FILE})}<|call|>"
    yield Form("tool call in a channel", "large", called, FILE)
    open_fence = f"<think>\nPerhaps\n```python\n{DRAFT}\nbut no.</think>\n{ANSWER}"
    yield Form("fence in reasoning without end", "large", open_fence, FILE)
    yield Form("lone mark after a fence without end", "large", open_fence.removeprefix("<think>"), FILE)
    yield Form(
        "reasoning nested in reasoning", "large", f"<think>a <think>b</think>\n{PLAN}</think>{ANSWER}", FILE
    )
    marked = FILE.replace("    inside =", '    # after "</think>", not <think>\n    inside =')
    yield Form("marks in a comment of the file", "large", fenced(marked), FILE)
    named = FILE.replace(
        "        y = torch", '        self.mark = "<thinking> [THINK] </think>"\n        y = torch'
    )
    yield Form("marks in a string of the file", "large", f"<think>{PLAN}</think>{fenced(named)}", named)
    yield Form("marks in a string of an unfenced file", "large", named, named)
    yield Form("mark in prose", "large", f"{ANSWER}\nI left out the `</think>` tag.\n", FILE)
    yield Form("reasoning without end, file last", "large", f"<think>\n{PLAN}So:\n{ANSWER}", FILE)
    yield Form("reasoning without end or answer", "large", f"<thinking>\n{PLAN}", None)
    yield Form("draft in reasoning alone", "large", f"<think>{PLAN}</think>I am not sure.", None)
    yield Form("edits in reasoning", "small", f"<thinking>{MISSING_EDIT}</thinking>\n{EDIT}", EDITED)
    yield Form("edits after bare channels", "small", f"analysis{MISSING_EDIT}assistantfinal{EDIT}", EDITED)


def _which_file() -> Iterator[Form]:
    yield Form("plain answer", "large", ANSWER, FILE)
    yield Form("corrected file after a first attempt", "large", f"{PLAN}Corrected:\n{ANSWER}", FILE)
    yield Form("stub before the file", "large", f"The shape:\n{fenced(STUB)}In full:\n{ANSWER}", FILE)
    outline = MODEL.replace(MODEL[MODEL.index("        y =") :], "        pass  # see below\n")
    yield Form("outline before the file", "large", f"{fenced(IMPORTS + outline)}{ANSWER}", FILE)
    yield Form("outline after the file", "large", f"{ANSWER}In short:\n{fenced(outline)}", FILE)
    again = f"{IMPORTS}\n# ... kernel as before ...\n\n{MODEL}"
    yield Form("shortened file after the full one", "large", f"{ANSWER}In short:\n{fenced(again)}", FILE)
    yield Form("broken file after a full one", "large", f"{ANSWER}\n```python\n{FILE[:-60]}\n", FILE)
    yield Form("reference quoted before", "large", f"Given:\n{fenced(REFERENCE)}Mine:\n{ANSWER}", FILE)
    yield Form("reference quoted after", "large", f"{ANSWER}It replaces\n{fenced(REFERENCE)}", FILE)
    yield Form("example call after", "large", f"{ANSWER}Use:\n{fenced(CALL)}", FILE)
    script = "from kernel import ModelNew\n\n\ndef test_it():\n    assert ModelNew()(torch.rand(4)).shape\n"
    yield Form("test script after", "large", f"{ANSWER}Test:\n{fenced(script)}", FILE)
    printed = "class ModelNew: 1.9x\n"
    yield Form("output after", "large", f"{ANSWER}Prints:\n{fenced(printed, 'text')}", FILE)
    yield Form("shell command before", "large", f"{fenced(INSTALL, 'bash')}{ANSWER}", FILE)
    parts = f"Kernel:\n{fenced(TOP)}Module:\n{fenced(BOTTOM)}"
    yield Form("kernel and module in two fences", "large", parts, f"{IMPORTS}\n{KERNEL}\n{IMPORTS}\n{MODEL}")
    thirds = f"{fenced(IMPORTS)}then\n{fenced(KERNEL)}and\n{fenced(MODEL)}"
    yield Form("imports, kernel, module in three fences", "large", thirds, FILE)
    future = "from __future__ import annotations\n"
    both = fenced(future + TOP) + fenced(future + BOTTOM)
    yield Form(
        "two fences with future imports", "large", both, f"{future}{IMPORTS}\n{KERNEL}\n{IMPORTS}\n{MODEL}"
    )
    yield Form(
        "only the module corrected",
        "large",
        f"{fenced(FILE.replace('128', '32'))}Better:\n{ANSWER_MODEL}",
        FILE,
    )
    turned = f"{fenced(BOTTOM)}with the kernel\n{fenced(TOP)}"
    yield Form("kernel after the module", "large", turned, f"{TOP}\n{BOTTOM}")
    linked = fenced(f"{IMPORTS}from kernels import scale\n\n{MODEL}")
    files = f"`kernels.py`\n{fenced(TOP)}`model.py`\n{linked}"
    yield Form("two files that import each other", "large", files, f"{IMPORTS}\n{KERNEL}\n{IMPORTS}\n{MODEL}")
    setup = fenced("from setuptools import setup\n\nsetup()\n")
    bench = fenced("import model\n\nprint(model.ModelNew())\n")
    others = f"setup.py:\n{setup}model.py:\n{ANSWER}bench.py:\n{bench}"
    yield Form("several files, one defines the class", "large", others, FILE)
    remarked = FILE.replace("    inside =", "    # the rest of the tile is unchanged\n\n    inside =")
    remarked = remarked.replace("    tl.store", "    # ... and the same for the last block\n    tl.store")
    yield Form("honest remarks in the file", "large", fenced(remarked), FILE)
    broken = FILE.replace("128),)", "128,)")
    yield Form("file that does not parse", "large", fenced(broken), broken)
    alias = FILE.replace("ModelNew", "FastModel") + "\n\nModelNew = FastModel\n"
    yield Form("class under an alias", "large", fenced(alias), alias)
    derived = REFERENCE + alias.replace("FastModel(nn.Module)", "FastModel(Model)")
    yield Form("derived class under an alias", "large", f"{fenced(REFERENCE)}{fenced(derived)}", derived)


def _fences() -> Iterator[Form]:
    infos = ["", "py", "Python3", "python:kernel.py", "{python}", "{.python .numberLines}", "kernel.py"]
    infos += ['python title="kernel.py"', "python {1,3-5}", "python showLineNumbers", "python copy"]
    infos += ["triton", " python ", "python # kernel.py", "python filename=kernel.py"]
    for info in infos:
        yield Form(f"info string: {info or 'none'}", "large", f"Here:\n{fenced(FILE, info)}Done.", FILE)
    yield Form("tildes", "large", f"Here:\n{fenced(FILE, 'python', '~~~')}Done.", FILE)
    yield Form("tildes after a stub", "large", f"{fenced(STUB)}\n{fenced(FILE, 'python', '~~~~')}", FILE)
    yield Form("language on a line of its own", "large", fenced(f"python\n{FILE}", ""), FILE)
    yield Form("fence without end", "large", f"Here:\n```python\n{FILE}", FILE)
    yield Form("two fences, the first without end", "large", f"```python\n{DRAFT}\nNo:\n{ANSWER}", FILE)
    yield Form("fence of a command without end", "large", f"```bash\npip install triton\n\n{ANSWER}", FILE)
    yield Form("text after the closing fence", "large", f"```python\n{FILE}``` is all.\n", FILE)
    yield Form("closing fence indented", "large", f"```python\n{FILE}  ```\nUse:\n{fenced(CALL)}", FILE)
    yield Form("prose in the fence", "large", fenced(f"Here is the whole file.\n\n{FILE}", ""), FILE)
    yield Form("fence after text", "large", f"Here it is: ```python\n{FILE}```", FILE)
    yield Form("quoted fence", "large", f"As asked:\n\n{indented(ANSWER, '> ')}\nDone.", FILE)
    yield Form("quoted fence, blank lines quoted", "large", "> " + ANSWER.strip().replace("\n", "\n> "), FILE)
    yield Form("fence in a list", "large", f"1. The file:\n\n{indented(ANSWER, '   ')}\n2. Done.", FILE)
    shallow = f"1. The file:\n   ```python\n{FILE}   ```\n"
    yield Form("fence in a list, code at the margin", "large", shallow, FILE)
    yield Form("fence deep in a list", "large", f"- a\n    - b\n\n{indented(ANSWER, ' ' * 8)}", FILE)
    yield Form("fence in a markdown fence", "large", f"````markdown\n# Kernel\n{ANSWER}````\n", FILE)
    yield Form("fence in an equal markdown fence", "large", f"```markdown\n# Kernel\n{ANSWER}```\n", FILE)
    documented = f'"""Use:\n\n```\nModelNew()\n```\n"""\n{FILE}'
    yield Form("fence in the docstring", "large", fenced(documented), FILE)
    helped = f'"""Use:\n\n```python\nModelNew()\n```\n"""\n{FILE}'
    yield Form("fence with language in the docstring", "large", fenced(helped), FILE)
    ends = ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>", "<end_of_turn>", "<｜end▁of▁sentence｜>"]
    for end in ends:
        yield Form(f"end of turn: {end}", "large", f"```python\n{FILE}{end}", FILE)
    turn = f"```python\n{FILE}<|im_end|>\n<|im_start|>user\nThanks!\n```python\n{DRAFT}```\n"
    yield Form("another turn after the end", "large", turn, FILE)
    yield Form("start of turn before", "large", f"<|im_start|>assistant\n{ANSWER}<|im_end|>", FILE)
    yield Form("byte order mark after the fence", "large", f"```python\n\ufeff{FILE}```\n", FILE)
    yield Form("byte order mark at the start", "large", f"\ufeff{ANSWER}", FILE)
    yield Form("line ends of old Macs", "large", ANSWER.replace("\n", "\r"), FILE)
    yield Form("line ends of Windows", "large", ANSWER.replace("\n", "\r\n"), FILE)


def _wrappers() -> Iterator[Form]:
    yield Form("code element", "large", f"<code>\n{FILE}</code>", FILE)
    yield Form("code element on the lines of the code", "large", f"Here: \n<code>{FILE.strip()}</code>", FILE)
    yield Form("escaped code element", "large", f"<pre><code>{escape(FILE)}</code></pre>", FILE)
    yield Form("answer element", "large", f"<reasoning>fuse</reasoning>\n<answer>\n{FILE}</answer>", FILE)
    yield Form("file element", "large", f'<file path="kernel.py">\n{FILE}</file>\n', FILE)
    yield Form("JSON", "large", json.dumps({"code": FILE}), FILE)
    yield Form(
        "JSON with prose",
        "large",
        f"Here:\n{json.dumps({'plan': 'fuse', 'code': FILE}, indent=1)}\nDone.",
        FILE,
    )
    yield Form("fenced JSON", "large", fenced(json.dumps({"code": FILE}) + "\n", "json"), FILE)
    yield Form("JSON with a fence", "large", json.dumps({"answer": f"Here:\n{ANSWER}"}), FILE)
    nested = [{"path": "a.md", "content": "fuse"}, {"path": "kernel.py", "content": FILE}]
    yield Form("JSON list of files", "large", json.dumps({"files": nested}), FILE)
    calls = json.dumps({"name": "submit", "arguments": {"code": FILE}})
    yield Form("tool call", "large", f"<tool_call>\n{calls}\n</tool_call>", FILE)
    quoted = json.dumps({"name": "submit", "arguments": json.dumps({"code": FILE})})
    yield Form("tool call with quoted arguments", "large", f"<tool_call>{quoted}</tool_call>", FILE)
    yield Form("JSON list of lines", "large", json.dumps({"code": FILE.splitlines()}), FILE)
    raw = '{"code": "' + FILE.replace("\\", "\\\\").replace('"', '\\"') + '"}'
    yield Form("JSON with raw line ends", "large", raw, FILE)
    yield Form("no fence", "large", FILE, FILE)
    prose = f"Here is the kernel. It fuses both operations.\n\n{FILE}\nIt takes one pass (see above).\n"
    yield Form("no fence, prose around", "large", prose, FILE)
    noted = f"{FILE}\nNotes:\n- BLOCK = 128 is a guess\nx = y holds (for all y).\n"
    yield Form("no fence, notes after", "large", noted, FILE)
    headed = f"# Answer\n\nfrom my analysis, one pass is enough:\n\n{FILE}\n\nclass and kernel are tested.\n"
    yield Form("no fence, prose like code", "large", headed, FILE)
    yield Form("no fence, indented", "large", f"Here it is:\n\n{indented(FILE, '    ')}\nDone.\n", FILE)
    added = "".join(f"+{line}" for line in FILE.splitlines(keepends=True))
    new_file = f"--- /dev/null\n+++ b/kernel.py\n@@ -0,0 +1,{added.count('+')} @@\n{added}"
    yield Form("diff of a new file", "large", fenced(new_file, "diff"), FILE)


def _small() -> Iterator[Form]:
    yield Form("plain edits", "small", EDIT, EDITED)
    yield Form("review and edits", "small", f"1. Take larger blocks, as in `BLOCK=256`.\n\n{EDIT}", EDITED)
    yield Form("edits in a fence", "small", fenced(EDIT, ""), EDITED)
    yield Form("edits in an XML fence", "small", fenced(EDIT, "xml"), EDITED)
    inner = pair(fenced(LAUNCH + "\n").strip(), fenced(NEW_LAUNCH + "\n").strip())
    yield Form("fences in the edits", "small", inner, EDITED)
    yield Form("edits in a quote", "small", indented(EDIT, "> "), EDITED)
    store = KERNEL.splitlines()[-1]
    blank = pair(f"    inside = at < n   \n  \n{store}\t", f"    inside = at < n\n{store}")
    blank += pair("BLOCK=64", "BLOCK=256", 2)
    yield Form("old text differs in trailing blanks", "small", blank, EDITED)
    yield Form("edits with old Macs' line ends", "small", EDIT.replace("\n", "\r"), EDITED)
    yield Form("edits with a byte order mark", "small", EDIT.replace("_1>\n", "_1>\n\ufeff"), EDITED)
    yield Form("edits and an end token", "small", EDIT.strip() + "<|im_end|>", EDITED)
    yield Form("edits without numbers", "small", EDIT.replace("_str_1", "_str"), EDITED)
    worded = EDIT.replace("</old_str_1>\n", "</old_str_1>\nbecomes\n")
    yield Form("words between old and new text", "small", worded, EDITED)
    apart = EDIT.replace("</old_str_1>\n", "</old_str_1>\n```\nto\n```python\n")
    yield Form("old and new text in two fences", "small", fenced(apart), EDITED)
    yield Form("edits corrected", "small", f"{MISSING_EDIT}Wrong line. Corrected:\n{EDIT}", EDITED)
    yield Form("unified diff", "small", DIFF, EDITED)
    yield Form("fenced diff with prose", "small", f"Larger blocks:\n{fenced(DIFF, 'diff')}Done.", EDITED)
    yield Form("diff with wrong counts", "small", fenced(DIFF.replace("20,5", "3,99"), "diff"), EDITED)
    bare = DIFF[DIFF.index("@@") :].replace("@@ -20,5 +20,5 @@", "@@")
    yield Form("diff without file names", "small", fenced(bare, "diff"), EDITED)
    git = "diff --git a/kernel.py b/kernel.py\nindex 83db48f..bf2c1d4 100644\n"
    yield Form("diff of git", "small", fenced(f"{git}{DIFF}", "diff"), EDITED)
    context = f"     inside = at < n\n\n-    tl.store(y\n+    tl.store( y\n@@\n-{LAUNCH}\n+{NEW_LAUNCH}\n"
    whole = context.replace("    tl.store(y\n", f"{KERNEL.splitlines()[-1]}\n").replace(
        "    tl.store( y\n", f"{KERNEL.splitlines()[-1]}  # one\n"
    )
    yield Form("diff of two places, blank context lines", "small", fenced(f"@@\n{whole}", "diff"), EDITED)
    yield Form("diff, then a list", "small", f"{DIFF}\n- Larger blocks.\n- Fewer programs.\n", EDITED)
    unmarked = DIFF.replace("@@ -20,5 +20,5 @@\n", "")
    yield Form("diff without hunk headers", "small", fenced(unmarked, "diff"), EDITED)
    objects = json.dumps({"edits": [{"old_str": LAUNCH, "new_str": NEW_LAUNCH}]})
    yield Form("edits as JSON", "small", fenced(objects + "\n", "json"), EDITED)
    yield Form("edits in a JSON string", "small", json.dumps({"answer": EDIT}), EDITED)
    search = f"<<<<<<< SEARCH\n{LAUNCH}\n=======\n{NEW_LAUNCH}\n>>>>>>> REPLACE\n"
    yield Form("search and replace", "small", fenced(search), EDITED)
    yield Form("whole file", "small", ANSWER, FILE, rewritten=True)
    yield Form("whole file without a fence", "small", f"I rewrote it:\n\n{FILE}", FILE, rewritten=True)
    yield Form("whole file after reasoning", "small", f"<think>{PLAN}</think>{ANSWER}", FILE, rewritten=True)
    yield Form("module alone", "small", ANSWER_MODEL, PARENT.replace(PARENT[-len(MODEL) + 2 :], MODEL), True)
    in_json = json.dumps({"code": FILE})
    yield Form("whole file in JSON", "small", in_json, FILE, rewritten=True)
    yield Form("edits, then the whole file", "small", f"{EDIT}In full:\n{fenced(FILE)}", FILE, rewritten=True)
    yield Form("a file, then edits", "small", f"The kernel now:\n{fenced(PARENT)}The edits:\n{EDIT}", EDITED)
    yield Form("edits, then the kernel before them", "small", f"{EDIT}It was\n{fenced(PARENT)}", EDITED)
    snippet = fenced(
        "class ModelNew(nn.Module):\n    # __init__ as before\n\n    def forward(self, x): ...\n"
    )
    yield Form("outline, then edits", "small", f"{snippet}{EDIT}", EDITED)
    yield Form("edits, then an outline", "small", f"{EDIT}{snippet}", EDITED)
    yield Form("edits that fail, and the file", "small", f"{ANSWER}{MISSING_EDIT}", FILE, rewritten=True)
    wrapped = pair("the whole file", FILE)
    yield Form("whole file as new text", "small", wrapped, FILE, rewritten=True)
    replaced = pair(PARENT, FILE)
    yield Form("edit of the whole file", "small", replaced, FILE)
    yield Form("whole file in a repair", "small repair", ANSWER, FILE, rewritten=True)
    yield Form("edits in a repair", "small repair", EDIT, EDITED)
    yield Form("file in a repair", "large repair", ANSWER, FILE)
    mended = pair("BLOCK=missing", "BLOCK=128")
    yield Form("edits of the file in a repair", "large repair", mended, FILE)
    patch = fenced("@@\n-" + BROKEN.splitlines()[-2] + "\n+" + FILE.splitlines()[-2] + "\n", "diff")
    yield Form("diff of the file in a repair", "large repair", patch, FILE)
    yield Form("edits, then the file, in a repair", "large repair", f"{mended}In full:\n{fenced(FILE)}", FILE)


def _nothing() -> Iterator[Form]:
    steps: tuple[Step, ...] = ("large", "small")
    for step in steps:
        yield Form(f"refusal, {step}", step, "I am sorry, but I cannot help with that.", None)
        yield Form(f"plan alone, {step}", step, "I would fuse both operations into one kernel.", None)
        yield Form(f"stub alone, {step}", step, fenced(f"{IMPORTS}\n{STUB}"), None)
        passed = f"{IMPORTS}\n\nclass ModelNew(nn.Module):\n    # same as before\n    pass\n"
        yield Form(f"class left out, {step}", step, fenced(passed), None)
        yield Form(f"output alone, {step}", step, fenced("max error 1e-7\n", "text"), None)
        yield Form(f"reference alone, {step}", step, fenced(REFERENCE), None)
        yield Form(f"kernel alone, {step}", step, fenced(f"{IMPORTS}\n{KERNEL}"), None)
        yield Form(f"call alone, {step}", step, fenced("model = ModelNew()\nmodel(x)\n"), None)
    left_out = f"{IMPORTS}\n\n{KERNEL}\n\nclass ModelNew(nn.Module):\n    ... existing code ...\n"
    yield Form("class of which code is left out", "large", fenced(left_out), None)
    hollow = FILE.replace(KERNEL[KERNEL.index("    at =") :], "    # same as before\n    ...\n")
    yield Form("kernel of which the body is left out", "large", fenced(hollow), None)
    yield Form("edits that do not match", "small", MISSING_EDIT, None)
    yield Form("diff that does not match", "small", fenced(DIFF.replace("64", "7"), "diff"), None)


FORMS = (*_reasoning(), *_which_file(), *_fences(), *_wrappers(), *_small(), *_nothing())
