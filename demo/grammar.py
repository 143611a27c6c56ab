"""The demo's tickets: customer messages with the truth about each, from a fixed seed.

Owns how a ticket is put together and the job's own words (`SYSTEM_PROMPT`, `answer`). The truth goes to the
report's scorer alone: neither teacher, judge nor student sees it. Same seed, same tickets, on every machine.
"""

import json
import random
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from demo import phrases, tones

URGENCIES = ("low", "normal", "high")
PRODUCTS = ("app", "web", "hub", "camera", "none")
FIELDS = ("category", "urgency", "product", "needs_human")

SYSTEM_PROMPT = f"""Triage the customer's message. Answer with compact JSON only, keys in this order:
category: the first problem named, one of {", ".join(phrases.CATEGORIES)}
urgency: high (says urgent, or a deadline within a day), low (says it can wait) or normal
product: {", ".join(PRODUCTS[:-1])} or none
needs_human: true if they ask for a person or threaten legal or official steps, else false"""

# Shares of all tickets. The three families in which the scripted teacher is blind come first.
SHARE_THREAT = 0.11
SHARE_IMPLICIT = 0.10
SHARE_RENEWAL = 0.05
SHARE_PERSON = 0.22
SHARE_HIGH = 0.22
SHARE_LOW = 0.2
SHARE_TYPOS = 0.12
SHARE_SHORT = 0.12
SHARE_SECOND = 0.05
SHARE_LONG = 0.07

_SLOT = re.compile(r"\{(\w+)\}")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_WORD = re.compile(r"[A-Za-z]{5,}")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_KEYS = {key: beside for row in _ROWS for key, beside in zip(row, row[1:] + row[-2], strict=True)}


@dataclass(frozen=True)
class Ticket:
    """One message and the truth about it: category, urgency, product (str) and needs_human (bool)."""

    id: str
    text: str
    truth: dict[str, str | bool]


@dataclass(frozen=True)
class _Plan:
    category: str
    product: str
    urgency: str  # high, implicit, low, normal
    human: str  # person, threat, no
    renewal: bool


def answer(truth: Mapping[str, str | bool]) -> str:
    """The canonical answer: compact JSON, keys in the order of `FIELDS` (20-21 SmolLM2 tokens)."""
    return json.dumps({field: truth[field] for field in FIELDS}, separators=(",", ":"))


def messages(text: str) -> list[dict[str, str]]:
    """The chat messages the app sends for one ticket."""
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": text}]


def generate(n: int, seed: int) -> list[Ticket]:
    """`n` tickets with distinct texts. Shares are exact quotas, so that small draws vary little."""
    rng = random.Random(seed)
    tickets: list[Ticket] = []
    seen: set[str] = set()
    for plan in _plans(n, rng):
        text = _write(plan, rng)
        while (key := re.sub(r"\W+", " ", text.lower())) in seen:
            text = _write(plan, rng)
        seen.add(key)
        truth: dict[str, str | bool] = {
            "category": plan.category,
            "urgency": "high" if plan.urgency == "implicit" else plan.urgency,
            "product": plan.product,
            "needs_human": plan.human != "no",
        }
        tickets.append(Ticket(f"t{seed}-{len(tickets):05d}", text, truth))
    return tickets


def _plans(n: int, rng: random.Random) -> list[_Plan]:
    renewals = _quota(n, {"yes": SHARE_RENEWAL}, "no", rng)
    humans = _quota(n, {"threat": SHARE_THREAT, "person": SHARE_PERSON}, "no", rng)
    hurry = {"implicit": SHARE_IMPLICIT, "high": SHARE_HIGH, "low": SHARE_LOW}
    urgencies = _quota(n, hurry, "normal", rng)
    plans = []
    categories = _cycle(phrases.CATEGORIES, n, rng)
    for category, renewal, human, urgency in zip(categories, renewals, humans, urgencies, strict=True):
        chosen = "refund" if renewal == "yes" else category
        # A third of the tickets name no product; the others one that makes sense with the category.
        product = "none" if rng.random() < 1 / 3 else rng.choice(phrases.TOPICS[chosen].fits)
        plans.append(_Plan(chosen, product, urgency, human, renewal == "yes"))
    return plans


def _quota(n: int, shares: Mapping[str, float], rest: str, rng: random.Random) -> list[str]:
    values = [value for value, share in shares.items() for _ in range(round(share * n))]
    values += [rest] * (n - len(values))
    rng.shuffle(values)
    return values


def _cycle(values: Sequence[str], n: int, rng: random.Random) -> list[str]:
    cycle = (list(values) * (n // len(values) + 1))[:n]
    rng.shuffle(cycle)
    return cycle


def _write(plan: _Plan, rng: random.Random) -> str:
    plain = plan.human == "no" and plan.urgency == "normal" and not plan.renewal
    if plain and rng.random() < SHARE_SHORT / 0.5:
        return _mistype(_short(plan, rng), rng)
    sentences = _body(plan, rng)
    text = _style(sentences, rng)
    if rng.random() < 0.35:
        text = rng.choice(tones.GREETINGS) + rng.choice([", ", "! ", " - ", ",\n"]) + text
    if rng.random() < 0.35:
        text += rng.choice([" ", "\n", " -- "]) + _fill(rng.choice(tones.SIGN_OFFS), plan.product, rng)
    return _mistype(text, rng)


def _short(plan: _Plan, rng: random.Random) -> str:
    pool = phrases.TOPICS[plan.category].short
    fitting = [template for template in pool if ("{p}" in template) == (plan.product != "none")]
    return _fill(rng.choice(fitting), plan.product, rng) + rng.choice(["", "", "!", "??", " thx", "..."])


def _body(plan: _Plan, rng: random.Random) -> list[str]:
    """Sentences without capitals and full stops: problem first, then what surrounds it."""
    topic = phrases.TOPICS[plan.category]
    named = plan.product != "none"
    pool = topic.on if named and rng.random() < 0.8 else topic.plain
    problem = _fill(rng.choice(pool), plan.product, rng)
    if plan.renewal:
        problem = _join(_fill(rng.choice(tones.RENEWAL), plan.product, rng), problem, rng)
    after: list[str] = []
    if named and pool is topic.plain:
        after.append(_fill(rng.choice(tones.TAILS), plan.product, rng))
    if plan.urgency in ("high", "low"):
        pool = tones.HIGH if plan.urgency == "high" else tones.LOW
        after.append(_fill(rng.choice(pool), plan.product, rng))
    if plan.urgency == "implicit":
        event, time = rng.choice(tones.IMPLICIT_EVENT), rng.choice(tones.IMPLICIT_TIME)
        after.append(_fill(f"{event} {time}", plan.product, rng))
    if plan.human != "no":
        pool = tones.PERSON if plan.human == "person" else tones.THREAT
        after.append(_fill(rng.choice(pool), plan.product, rng))
    for chatter in (tones.NEUTRAL, tones.GRUMBLE):
        if rng.random() < 0.25:
            after.append(_fill(rng.choice(chatter), plan.product, rng))
    rng.shuffle(after)
    if rng.random() < SHARE_SECOND:
        other = rng.choice([c for c in phrases.CATEGORIES if c != plan.category])
        second = _fill(rng.choice(phrases.TOPICS[other].plain), plan.product, rng)
        after.insert(rng.randint(0, len(after)), f"{rng.choice(tones.ALSO)} {second}")
    if rng.random() < SHARE_LONG:
        stories = rng.sample(tones.STORIES, rng.randint(1, 3))
        after[1:1] = [_fill(story, plan.product, rng) for story in stories]
    before = [_fill(rng.choice(tones.PREAMBLES), plan.product, rng)] if rng.random() < 0.2 else []
    return [*before, problem, *after]


def _join(clause: str, problem: str, rng: random.Random) -> str:
    glue = ", " if clause.startswith("after") else rng.choice([" and ", ", so ", ". "])
    return f"{clause}{glue}{problem}"


def _style(sentences: list[str], rng: random.Random) -> str:
    tidy = rng.random() < 0.75
    text = ""
    for sentence in sentences:
        stop = rng.choice([". ", ". ", ". ", "! ", " - ", "... "]) if tidy else rng.choice([" ", ", ", ". "])
        text += (sentence[0].upper() + sentence[1:] if tidy else sentence) + stop
    text = re.sub(r"[ ,-]+$", "", text)
    return text if tidy else text.replace("I ", "i ").replace("I'", "i'")


def _fill(template: str, product: str, rng: random.Random) -> str:
    """One wording of the template, with its slots filled."""
    text = _CHOICE.sub(lambda match: rng.choice(match[1].split("|")), template)
    return _SLOT.sub(lambda match: _slot(match[1], product, rng), text).strip()


def _slot(name: str, product: str, rng: random.Random) -> str:
    """A value for a slot. Raises KeyError for a slot that is none."""
    makers: dict[str, Callable[[], str]] = {
        "p": lambda: rng.choice(phrases.PRODUCTS[product]),
        "n": lambda: str(rng.randint(2, 9)),
        "amount": lambda: f"{rng.choice('€£$')}{rng.randint(4, 240)}{rng.choice(['', '.90', '.50', '.99'])}",
        "order": lambda: f"{rng.choice(['', '#', 'no. '])}{rng.randint(1000, 99999)}",
        "code": lambda: "".join(rng.choices(string.ascii_uppercase, k=2)) + str(rng.randint(10, 999)),
        "phone": lambda: f"0{rng.randint(100, 999)} {rng.randint(1000, 9999)}",
        "email": lambda: f"{rng.choice('abdefgjklmnprst')}{rng.randint(10, 99)}@example.{rng.choice(['com', 'org'])}",
        "month": lambda: rng.choice(tones.MONTHS),
        "day": lambda: rng.choice(tones.DAYS),
        "city": lambda: rng.choice(tones.CITIES),
        "name": lambda: rng.choice(tones.NAMES),
    }
    return makers[name]()


def _mistype(text: str, rng: random.Random) -> str:
    """One to three slips of the finger, at most one a word, only in words of five letters and more."""
    if rng.random() >= SHARE_TYPOS:
        return text
    words = list(_WORD.finditer(text))
    slipped = rng.sample(words, min(len(words), rng.choice([1, 1, 2, 3])))
    for word in sorted(slipped, key=lambda match: -match.start()):
        at = word.start() + rng.randint(1, len(word[0]) - 2)
        this, following = text[at], text[at + 1]
        slips = [following + this, this, this * 2 + following, _KEYS.get(this, this) + following]
        text = text[:at] + rng.choice(slips) + text[at + 2 :]
    return text
