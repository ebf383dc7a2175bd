"""The model calls of one step, kept in order with their cost."""

from __future__ import annotations

from dataclasses import replace

from adaexplore.core.draft import Draft, DraftOutcome, Exchange
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest, Purpose


def _encodable(text: str) -> str:
    """Half of a surrogate pair, which no file and no request can hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Conversation:
    """Asks the model and remembers what was said; ``name`` begins the key of every request."""

    def __init__(self, client: ModelClient, name: str) -> None:
        self._client = client
        self._name = name
        self._exchanges: list[Exchange] = []
        self._usage = Usage()

    def ask(self, purpose: Purpose, prompt: str) -> ModelReply:
        """One request; each is a conversation of its own for the model."""
        reply = self._client.complete(ModelRequest(prompt, purpose, f"{self._name}/{purpose.value}"))
        reply = replace(reply, text=_encodable(reply.text))
        self._exchanges.append(Exchange(purpose.value, prompt, reply.text, reply.finish.value))
        self._usage += reply.usage
        return reply

    def draft(self, outcome: DraftOutcome, source: str) -> Draft:
        """Close the step."""
        return Draft(outcome, source, tuple(self._exchanges), self._usage)
