"""Texts of posts from a small grammar of topics, for simulated archives."""

from __future__ import annotations

_WORDS = """
football match goal team|music album concert song|painting gallery artist colour|cooking recipe dinner spice
travel train island hotel|science paper theory data|politics vote party law|film actor scene director
games level player console|garden flower seed soil|books novel author chapter|weather storm rain cloud
cats kitten whiskers purr|dogs puppy walk leash|birds nest feather song|cycling bike road race
running marathon shoes pace|coding compiler bug function|space rocket planet orbit|history empire museum war
fashion dress designer fabric|photography lens light portrait|money market price bank|health sleep doctor diet
coffee espresso beans cup|cities street tower bridge|maths proof number graph|language word grammar verb
comics panel hero villain|theatre stage play curtain|climate carbon forest ocean|chess opening knight endgame
"""
_SENTENCES = (
    "I keep thinking about {0} and the {1}.",
    "Today it was all {0}: a {1}, a {2}, and then another {1}.",
    "Does anybody else care about the {1} as much as about {0}?",
    "A thread on {0}. First, the {2}; second, the {3}.",
    "The best {1} of the week. {0} never gets old.",
    "No {2} without a {3}, as they say in {0}.",
)


def topic_words(topic: int) -> tuple[str, ...]:
    """Return the four words of a topic; topics beyond the list share words with earlier ones."""
    topics = "|".join(_WORDS.split("\n")).strip("|").split("|")
    return tuple(topics[topic % len(topics)].split())


def write_text(topic: int, number: int) -> str:
    """Return the text of a post on a topic; ``number`` chooses the sentence."""
    return _SENTENCES[number % len(_SENTENCES)].format(*topic_words(topic))
