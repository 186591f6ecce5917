"""The peer of preimage attacks in the SAT benchmark: MD4, SHA-1 and SHA-256 as clauses, in plain Python.

Gates of constants are folded; words are added by chains of full adders. See :mod:`benchmarks.sat_peers`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal, localcontext

from benchmarks.sat_peers import PlainFormula, renamed

TRUE = 1 << 30  # the constant that is true, as a literal
Word = list[int]  # 32 literals, the least significant bit first

_REGISTERS = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
_MD4 = (
    (0, (3, 7, 11, 19), range(16)),
    (0x5A827999, (3, 5, 9, 13), (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)),
    (0x6ED9EBA1, (3, 9, 11, 15), (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15)),
)
_SHA1 = (0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6)


def _fraction(number: Decimal) -> int:
    return int((number % 1) * (1 << 32))


_PRIMES = [p for p in range(2, 312) if all(p % d for d in range(2, math.isqrt(p) + 1))]
with localcontext() as _context:
    _context.prec = 50
    _SHA256 = [_fraction(Decimal(p) ** (Decimal(1) / 3)) for p in _PRIMES]
    _SHA256_REGISTERS = [_fraction(Decimal(p).sqrt()) for p in _PRIMES[:8]]


class Encoder:
    """Clauses that grow, and the value of every variable under one message."""

    def __init__(self) -> None:
        self.clauses: list[list[int]] = []
        self.values = [True]

    def value(self, x: int) -> bool:
        if abs(x) == TRUE:
            return x > 0
        return self.values[abs(x)] == (x > 0)

    def variable(self, value: bool) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def both(self, x: int, y: int) -> int:
        if -TRUE in (x, y) or x == -y:
            return -TRUE
        if x in (TRUE, y):
            return y
        if y == TRUE:
            return x
        g = self.variable(self.value(x) and self.value(y))
        self.clauses += [[-g, x], [-g, y], [g, -x, -y]]
        return g

    def either(self, x: int, y: int) -> int:
        return -self.both(-x, -y)

    def xor(self, x: int, y: int) -> int:
        if abs(x) == TRUE:
            return -y if x > 0 else y
        if abs(y) == TRUE:
            return -x if y > 0 else x
        if abs(x) == abs(y):
            return -TRUE if x == y else TRUE
        g = self.variable(self.value(x) != self.value(y))
        self.clauses += [[-g, x, y], [-g, -x, -y], [g, -x, y], [g, x, -y]]
        return g

    def xor3(self, x: int, y: int, z: int) -> int:
        if TRUE in (abs(x), abs(y), abs(z)) or len({abs(x), abs(y), abs(z)}) < 3:
            return self.xor(self.xor(x, y), z)
        g = self.variable(self.value(x) ^ self.value(y) ^ self.value(z))
        for a in (x, -x):
            for b in (y, -y):
                for c in (z, -z):
                    negated = (a != x) + (b != y) + (c != z)
                    self.clauses.append([a, b, c, -g if negated % 2 == 0 else g])
        return g

    def majority(self, x: int, y: int, z: int) -> int:
        for a, b, c in ((x, y, z), (y, x, z), (z, x, y)):
            if a == TRUE:
                return self.either(b, c)
            if a == -TRUE:
                return self.both(b, c)
            if b == c:
                return b
            if b == -c:
                return a
        g = self.variable(self.value(x) + self.value(y) + self.value(z) >= 2)
        self.clauses += [[-g, x, y], [-g, x, z], [-g, y, z], [g, -x, -y], [g, -x, -z], [g, -y, -z]]
        return g

    def choice(self, x: int, y: int, z: int) -> int:
        if abs(x) == TRUE:
            return y if x > 0 else z
        if y == z:
            return y
        if TRUE in (abs(y), abs(z)) or abs(x) in (abs(y), abs(z)):
            return self.either(self.both(x, y), self.both(-x, z))
        g = self.variable(self.value(y) if self.value(x) else self.value(z))
        self.clauses += [[-x, -g, y], [-x, g, -y], [x, -g, z], [x, g, -z]]
        return g

    def add(self, *words: Word) -> Word:
        total = words[0]
        for word in words[1:]:
            carry, result = -TRUE, []
            for x, y in zip(total, word, strict=True):
                result.append(self.xor3(x, y, carry))
                if len(result) < 32:
                    carry = self.majority(x, y, carry)
            total = result
        return total

    def each_bit(self, gate: str, *words: Word) -> Word:
        return [getattr(self, gate)(*bits) for bits in zip(*words, strict=True)]


def constant(number: int) -> Word:
    return [TRUE if number >> i & 1 else -TRUE for i in range(32)]


def rotl(word: Word, distance: int) -> Word:
    return [word[(i - distance) % 32] for i in range(32)]


def shr(word: Word, distance: int) -> Word:
    return word[distance:] + [-TRUE] * distance


def _md4(e: Encoder, rounds: int, words: list[Word]) -> list[Word]:
    a, b, c, d = start = [constant(number) for number in _REGISTERS[:4]]
    for step in range(rounds):
        number, shifts, order = _MD4[step // 16]
        mixed = e.each_bit(("choice", "majority", "xor3")[step // 16], b, c, d)
        total = e.add(a, mixed, words[order[step % 16]], constant(number))
        a, b, c, d = d, rotl(total, shifts[step % 4]), b, c
    # the standard names registers by turns: after s steps the newest one is A, D, C or B
    shift = rounds % 4
    registers = [a, b, c, d]
    registers = registers[shift:] + registers[:shift]
    return [e.add(x, y) for x, y in zip(registers, start, strict=True)]


def _sha1(e: Encoder, rounds: int, words: list[Word]) -> list[Word]:
    a, b, c, d, f = start = [constant(number) for number in _REGISTERS]
    w = list(words)
    for t in range(rounds):
        if t >= 16:
            w.append(rotl(e.each_bit("xor", e.each_bit("xor3", w[t - 3], w[t - 8], w[t - 14]), w[t - 16]), 1))
        mixed = e.each_bit(("choice", "xor3", "majority", "xor3")[t // 20], b, c, d)
        total = e.add(rotl(a, 5), mixed, f, w[t], constant(_SHA1[t // 20]))
        a, b, c, d, f = total, a, rotl(b, 30), c, d
    return [e.add(x, y) for x, y in zip((a, b, c, d, f), start, strict=True)]


def _sha256(e: Encoder, rounds: int, words: list[Word]) -> list[Word]:
    start = [constant(number) for number in _SHA256_REGISTERS]
    a, b, c, d, f, g, h, i = start
    w = list(words)
    for t in range(rounds):
        if t >= 16:
            low = e.each_bit("xor3", rotl(w[t - 15], 25), rotl(w[t - 15], 14), shr(w[t - 15], 3))
            high = e.each_bit("xor3", rotl(w[t - 2], 15), rotl(w[t - 2], 13), shr(w[t - 2], 10))
            w.append(e.add(w[t - 16], low, w[t - 7], high))
        high = e.each_bit("xor3", rotl(f, 26), rotl(f, 21), rotl(f, 7))
        first = e.add(i, high, e.each_bit("choice", f, g, h), w[t], constant(_SHA256[t]))
        low = e.each_bit("xor3", rotl(a, 30), rotl(a, 19), rotl(a, 10))
        total = e.add(first, low, e.each_bit("majority", a, b, c))
        a, b, c, d, f, g, h, i = total, a, b, c, e.add(d, first), f, g, h
    return [e.add(x, y) for x, y in zip((a, b, c, d, f, g, h, i), start, strict=True)]


_FUNCTIONS = {"md4": _md4, "sha1": _sha1, "sha256": _sha256}


def _place(name: str, i: int) -> tuple[int, int]:
    """Return the word of bit i of a message or digest, and its place from the least significant bit."""
    word, i = divmod(i, 32)
    return word, 8 * (i // 8) + 7 - i % 8 if name == "md4" else 31 - i


def encode(name: str, rounds: int, message: Sequence[bool], known: Sequence[bool]) -> tuple[Encoder, list[int]]:
    """Return the clauses of a hash function of one block, and the literals of the digest.

    Bits are in the order of the standards, the most significant bit of a byte first. The message's bits that are not
    known are the first variables.
    """
    e = Encoder()
    words = [[0] * 32 for _ in range(16)]
    for i in range(512):
        word, place = _place(name, i)
        words[word][place] = (TRUE if message[i] else -TRUE) if known[i] else e.variable(message[i])
    state = _FUNCTIONS[name](e, rounds, words)
    places = [_place(name, i) for i in range(32 * len(state))]
    return e, [state[word][place] for word, place in places]


def preimage(rng: random.Random, name: str, rounds: tuple[int, int], fixed_bits: tuple[int, int]) -> PlainFormula:
    """Draw a preimage attack: the digest of a random message, of which some bits are known, as unit clauses."""
    steps = rng.randint(*rounds)
    fixed = set(rng.sample(range(512), rng.randint(*fixed_bits)))
    message = [rng.random() < 0.5 for _ in range(512)]
    e, digest = encode(name, steps, message, [i in fixed for i in range(512)])
    e.clauses += [[bit if e.value(bit) else -bit] for bit in digest if abs(bit) != TRUE]
    return renamed(rng, (len(e.values) - 1, e.clauses), flip=False)
