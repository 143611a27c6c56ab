"""The app against the scripted teacher, without Stepdown between them: it is an ordinary OpenAI app."""

import json
import subprocess
import sys

import pytest

from demo import app, grammar, teacher_rules


def test_answers_come_in_order_streamed_and_not(teacher_url: str, teacher_key: str) -> None:
    tickets = grammar.generate(30, 1)
    seen: list[app.Answer] = []
    answers = app.triage_all(app.inbox(tickets), app.Endpoint(teacher_url, teacher_key), each=seen.append)
    assert [a.message.id for a in answers] == [t.id for t in tickets]
    assert len(seen) == 30
    for answer, ticket in zip(answers, tickets, strict=True):
        assert json.loads(answer.text) == teacher_rules.triage(ticket.text, 7)
        assert answer.error is None
        assert answer.completion_tokens > 5
        assert (answer.first_seconds is not None) == answer.message.stream
        assert answer.served_by is None
    assert sum(a.message.stream for a in answers) == 10


def test_an_error_is_an_answer(teacher_url: str) -> None:
    [answer] = app.triage_all(app.inbox(grammar.generate(1, 1)), app.Endpoint(teacher_url, "sk-wrong"))
    assert answer.error
    assert "AuthenticationError" in answer.error
    assert answer.text == ""


def test_the_script_alone(teacher_url: str, teacher_key: str) -> None:
    command = [sys.executable, "-m", "demo.app", "--n", "3", "--show", "--base-url", teacher_url]
    done = subprocess.run([*command, "--api-key", teacher_key], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "3 answered, 0 failed" in done.stdout
    assert done.stdout.count('"needs_human"') == 3
    refused = subprocess.run(
        [*command, "--api-key", "sk-wrong"], capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 1
    assert "first error" in refused.stdout


@pytest.mark.parametrize("name", ["truth", "category"])
def test_the_app_never_holds_the_truth(name: str) -> None:
    assert not hasattr(app.inbox(grammar.generate(1, 1))[0], name)
