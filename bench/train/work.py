"""Makes what both trainers are given: the very same tokens, weights, rewards. Knows neither trainer.

The calls are those of a small intent task in CLINC150's shape: a system prompt of about 121 tokens, a request of about
twenty, a short answer in JSON. They come from a grammar, so that the bench needs nothing but this file.
"""

from __future__ import annotations

import random
from typing import Any

from rl.render import Renderer

SYSTEM = (
    "You sort the requests that reach the help desk of a large bank and travel club. Read the request and name the one "
    "intent behind it, as the desk's routing table spells it: lower case, words joined by underscores. Do not answer "
    "the request, do not ask back, and do not explain your choice. When a request touches two matters, name the one "
    "that the customer wants done first. When it is about nothing that the desk can do, name out_of_scope. Answer with "
    "one line of JSON that holds the key intent and nothing else."
)
_OPENINGS = ["hi there, ", "hello, ", "good morning, ", "sorry to bother you again, but ", "quick question: ", "hey, "]
_ENDINGS = ["", " please", " as soon as possible", ", thank you", ", i am in a bit of a hurry", " before the weekend"]
_DETAILS = [
    "on the card that ends in {n}", "for my trip to {city}", "from last {day}", "in {city}", "for the {day} flight",
    "on my savings account", "since {day} morning", "after i moved to {city}", "with the number {n}",
]  # fmt: skip
_CITIES = ["lisbon", "oslo", "denver", "nairobi", "kyoto", "lima", "austin", "vienna", "seoul", "perth"]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_INTENTS = {
    "card_lost": "i can not find my card {d} anymore, can you block it",
    "card_declined": "the shop said that my card was refused {d}, what happened",
    "card_limit": "what is the most that i can spend {d}",
    "card_new": "i would like to order another card {d}",
    "pin_change": "how do i get a new pin {d}",
    "balance": "tell me how much money is left {d}",
    "transfer": "move two hundred to my landlord {d}",
    "transfer_late": "the money i sent {d} has still not arrived",
    "direct_debit": "stop the monthly payment to the gym {d}",
    "interest_rate": "what interest do i earn {d}",
    "fraud": "somebody bought things {d} and it was not me",
    "statement": "send me the statement {d}",
    "fee": "why was i charged a fee {d}",
    "loan": "could i borrow five thousand {d}",
    "flight_book": "find me a seat {d}",
    "flight_status": "is the plane on time {d}",
    "flight_change": "i need to leave one day later {d}",
    "flight_cancel": "i can not travel any more {d}, cancel it",
    "baggage_lost": "my suitcase did not come out {d}",
    "baggage_rules": "how heavy may my bag be {d}",
    "hotel_book": "i need a room for two nights {d}",
    "hotel_cancel": "please drop the room i took {d}",
    "car_rent": "rent me a small car {d}",
    "visa": "do i need papers to enter the country {d}",
    "insurance": "does my cover pay for a doctor {d}",
    "exchange_rate": "how many euros do i get for a dollar {d}",
    "points": "how many points did i collect {d}",
    "address_change": "my street is a different one {d}",
    "talk_to_human": "put me through to a person {d}",
    "complaint": "i am unhappy with how i was treated {d}",
}


def make(renderer: Renderer, seed: int = 1) -> dict[str, Any]:
    """All the work, ready for JSON: sequences to imitate, and groups of rollouts with their rewards."""
    draw = random.Random(seed)
    return {
        "tune_sft": [_example(renderer, draw, SYSTEM) for _ in range(9)],
        "tune_grpo": [_group(renderer, draw, size=8)],
        "sft_shared": [_example(renderer, draw, SYSTEM) for _ in range(32)],
        "sft_distinct": [_example(renderer, draw, _shuffled(draw)) for _ in range(32)],
        "grpo_task": [_group(renderer, draw, size=8) for _ in range(16)],
        "grpo_512": [_random_group(draw, prompt=512, size=8, completion=48)],
        "grpo_128": [_random_group(draw, prompt=128, size=8, completion=128)],
        "parity": [_group(renderer, draw, size=4) for _ in range(2)],
    }


def _messages(draw: random.Random, system: str) -> tuple[list[dict[str, str]], str]:
    intent = draw.choice(list(_INTENTS))
    detail = draw.choice(_DETAILS).format(
        n=draw.randrange(1000, 9999), city=draw.choice(_CITIES), day=draw.choice(_DAYS)
    )
    request = draw.choice(_OPENINGS) + _INTENTS[intent].format(d=detail) + draw.choice(_ENDINGS)
    return [{"role": "system", "content": system}, {"role": "user", "content": request}], intent


def _answer(intent: str) -> str:
    return f'{{"intent": "{intent}"}}'


def _shuffled(draw: random.Random) -> str:
    """The same system prompt in another order of words: as many tokens, and nothing shared."""
    words = SYSTEM.split()
    draw.shuffle(words)
    return " ".join(words)


def _example(renderer: Renderer, draw: random.Random, system: str) -> dict[str, list[float]]:
    messages, intent = _messages(draw, system)
    datum = renderer.example(messages, _answer(intent))
    return {"tokens": list(datum.tokens), "weights": list(datum.weights)}


def _group(renderer: Renderer, draw: random.Random, size: int) -> dict[str, Any]:
    """Rollouts as a policy after its warm start gives them: half of them right, the others one of four near misses."""
    messages, intent = _messages(draw, SYSTEM)
    others = draw.sample([name for name in _INTENTS if name != intent], 4)
    said = [intent if draw.random() < 0.5 else draw.choice(others) for _ in range(size)]
    prompt = renderer.prompt(messages)
    completions = [list(renderer.example(messages, _answer(name)).tokens)[len(prompt) :] for name in said]
    return {"prompt": prompt, "completions": completions, "rewards": [float(name == intent) for name in said]}


def _random_group(draw: random.Random, prompt: int, size: int, completion: int) -> dict[str, Any]:
    """Tokens drawn blindly: siblings share their prompt and nothing else."""

    def tokens(count: int) -> list[int]:
        return [draw.randrange(1000, 40_000) for _ in range(count)]

    return {
        "prompt": tokens(prompt),
        "completions": [tokens(completion) for _ in range(size)],
        "rewards": [draw.random() for _ in range(size)],
    }
