"""Reading a customer's message by rules: spelling first, then cues, the earliest deciding.

Owns `read`, the careful reader that the scripted teacher (with blind spots added) and the scripted judge use.
It sees the text alone, as a model would, and never the grammar's labels.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from demo import cues

UNSURE = "setup"  # no cue at all: what a message is answered with

_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Reading:
    """The four fields, and which kind of evidence decided them."""

    category: str
    urgency: str
    product: str
    needs_human: bool
    sure: bool  # a category cue was found
    only_deadline: bool  # urgent by an implied deadline alone
    only_threat: bool  # a person is due because of a threat alone
    renewal: bool  # an automatic renewal is mentioned

    def fields(self) -> dict[str, str | bool]:
        return {
            "category": self.category,
            "urgency": self.urgency,
            "product": self.product,
            "needs_human": self.needs_human,
        }


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """Reads one message. Cost: some 0.1 ms."""
    words = " ".join(spell(word) for word in _WORD.findall(text.lower().replace("'", "").replace("-", "")))
    category = _earliest(words, "category")
    low, high, deadline = _found(words, "low"), _found(words, "high"), _found(words, "deadline")
    person, threat = _found(words, "person"), _found(words, "threat")
    return Reading(
        category=category or UNSURE,
        urgency="low" if low else "high" if high or deadline else "normal",
        product=_earliest(words, "product") or "none",
        needs_human=person or threat,
        sure=category is not None,
        only_deadline=deadline and not high and not low,
        only_threat=threat and not person,
        renewal=_found(words, "renewal"),
    )


def spell(word: str) -> str:
    """The cue word that `word` is one slip away from, else the word itself."""
    if len(word) < 4 or word in _known():
        return word
    near = {cue for part in _cuts(word) for cue in _by_cut().get(part, ()) if _one_slip(word, cue)}
    return min(near) if near else word


def _earliest(words: str, field: str) -> str | None:
    best: tuple[int, int, str] | None = None
    for value, pattern in _patterns(field).items():
        if match := pattern.search(words):
            here = (match.start(), -len(match[0]), value)
            best = min(best, here) if best else here
    return best[2] if best else None


def _found(words: str, field: str) -> bool:
    return any(pattern.search(words) for pattern in _patterns(field).values())


@cache
def _patterns(field: str) -> dict[str, re.Pattern[str]]:
    table = getattr(cues, field.upper())
    by_value = table if isinstance(table, dict) else {field: table}
    return {value: re.compile("|".join(map(_regex, phrases))) for value, phrases in by_value.items()}


def _regex(phrase: str) -> str:
    return r"\b" + " ".join(f"(?:{word})" for word in phrase.split()) + r"\b"


@cache
def _cue_words() -> frozenset[str]:
    tables = [*cues.CATEGORY.values(), *cues.PRODUCT.values()]
    tables += [cues.LOW, cues.HIGH, cues.DEADLINE, cues.PERSON, cues.THREAT, cues.RENEWAL]
    return frozenset(w for table in tables for phrase in table for w in re.split(r"[ |]", phrase))


@cache
def _known() -> frozenset[str]:
    return _cue_words() | frozenset(cues.COMMON)


@cache
def _by_cut() -> dict[str, tuple[str, ...]]:
    """Cue words of five letters and more by what is left of them after one cut."""
    index: dict[str, tuple[str, ...]] = {}
    for cue in sorted(_cue_words()):
        if len(cue) >= 5:
            for part in _cuts(cue):
                index[part] = (*index.get(part, ()), cue)
    return index


def _cuts(word: str) -> set[str]:
    return {word} | {word[:i] + word[i + 1 :] for i in range(len(word))}


def _one_slip(word: str, cue: str) -> bool:
    """Whether one insertion, deletion, substitution or swap, not of the first letter, joins the two."""
    if word[0] != cue[0]:
        return False
    if len(word) != len(cue):
        longer, shorter = (word, cue) if len(word) > len(cue) else (cue, word)
        return any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
    wrong = [i for i in range(len(word)) if word[i] != cue[i]]
    if len(wrong) == 1:
        return True
    first, last = (wrong[0], wrong[-1]) if wrong else (0, 0)
    return len(wrong) == 2 and last == first + 1 and word[first] + word[last] == cue[last] + cue[first]
