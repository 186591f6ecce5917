"""Errors of foreign code are described without raising one; Ctrl-C is told from a KeyboardInterrupt of the code."""

import os
import signal
import sys
import threading

import pytest

from graphbench.core.foreign import causes, class_name, described, interrupts_noted, prints_on_stderr, text_of


class Odd(BaseException):
    def __init__(self, text):
        super().__init__()
        self.text = text

    def __str__(self):
        if isinstance(self.text, BaseException):
            raise self.text
        return self.text


class Shout(str):
    def __iter__(self):
        raise SystemExit

    def __getitem__(self, key):
        raise SystemExit


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such node"), "ValueError: no such node"),
        (ValueError("two\nlines"), "ValueError: two\nlines"),
        (ValueError(), "ValueError"),
        (Odd("\x1b[31mred\u202e"), r"Odd: \x1b[31mred\u202e"),
        (Odd(3), "Odd: (no text: __str__ raised TypeError)"),
        (Odd(GeneratorExit()), "Odd: (no text: __str__ raised GeneratorExit)"),
        (Odd(KeyboardInterrupt()), "Odd: (no text: __str__ raised KeyboardInterrupt)"),
        (Odd(Shout("loud")), "Odd: loud"),
        (type("\x1b[31m", (Exception,), {})("red"), r"\x1b[31m: red"),
    ],
)
def test_any_error_is_described(error, told):
    assert described(error) == told


def test_a_text_without_end_is_cut_and_no_code_of_a_class_names_it():
    assert len(described(ValueError("x" * 10**7))) < 5000
    assert text_of("x" * 50, 10) == "xxxxxxx..."

    class Meta(type):
        @property
        def __name__(cls):
            raise SystemExit

    assert class_name(Meta("Plain", (), {})()) == "Plain"


def test_causes_that_form_a_circle_end():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__context__ = second, first
    assert list(causes(first)) == [first, second]
    assert list(causes(first, contexts=True)) == [first, second] and list(causes(None)) == []


def test_ctrl_c_is_told_from_a_keyboard_interrupt_of_the_code():
    before = signal.getsignal(signal.SIGINT)
    with interrupts_noted() as interrupts, pytest.raises(KeyboardInterrupt):
        raise KeyboardInterrupt
    assert not interrupts.received
    with interrupts_noted() as interrupts, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(60)
    assert interrupts.received and signal.getsignal(signal.SIGINT) is before


def test_a_handler_that_does_not_interrupt_decides():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interrupts_noted() as interrupts:
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT] and not interrupts.received


def test_other_threads_are_interrupted_by_nobody():
    found = []

    def run():
        with interrupts_noted() as interrupts:
            found.append((interrupts.received, text_of(Odd(KeyboardInterrupt()))))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(False, "(no text: __str__ raised KeyboardInterrupt)")]


def test_prints_go_to_standard_error_and_streams_come_back(capsys):
    streams = sys.stdout, sys.stderr
    with prints_on_stderr():
        print("aside")
        sys.stdout = sys.stderr = None
    assert (sys.stdout, sys.stderr) == streams
    assert capsys.readouterr() == ("", "aside\n")
