"""The model calls of one step, kept in order with their cost."""

from __future__ import annotations

from dataclasses import replace

from adaexplore.core.draft import Draft, DraftOutcome, Exchange, RepairReason, request_name
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest, Purpose, Turn
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.steps import noted


def _encodable(text: str) -> str:
    """Half of a surrogate pair, which no file and no request can hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Conversation:
    """Asks the model and remembers what was said; ``name`` begins the key of every request.

    A ``note`` ends every prompt but those of repairs.
    """

    def __init__(self, client: ModelClient, name: str, note: str = "") -> None:
        self._client = client
        self._name = name
        self._note = note
        self._turns: tuple[Turn, ...] = ()
        self._exchanges: list[Exchange] = []
        self._usage = Usage()

    def ask(self, purpose: Purpose, prompt: Prompt) -> ModelReply:
        """One request that stands alone: for the model a conversation begins."""
        self._turns = ()
        return self._ask(purpose, noted(prompt, self._note).text, prompt.cuts, "")

    def ask_again(self, reason: RepairReason, prompt: str) -> ModelReply:
        """Answer the last reply, which was not blank, within the same conversation."""
        return self._ask(Purpose.REPAIR, prompt, (), reason.value)

    def draft(self, outcome: DraftOutcome, source: str, verdict: Verdict | None = None) -> Draft:
        """Close the step."""
        return Draft(outcome, source, tuple(self._exchanges), self._usage, verdict)

    def _ask(self, purpose: Purpose, prompt: str, cuts: tuple[int, ...], reason: str) -> ModelReply:
        name = request_name(purpose.value, [exchange.purpose for exchange in self._exchanges])
        request = ModelRequest(prompt, purpose, f"{self._name}/{name}", cuts, self._turns)
        reply = self._client.complete(request)
        reply = replace(reply, text=_encodable(reply.text))
        self._exchanges.append(Exchange(purpose.value, prompt, reply.text, reply.finish.value, reason))
        self._turns = (*self._turns, Turn(prompt, purpose, reply.text, cuts))
        self._usage += reply.usage
        return reply
