"""Okapi BM25 in plain Python: the rule that keyword search in SQL must agree with.

score(d) = Σ over distinct question lexemes t in d of
    ln(1 + (N - df + 0.5) / (df + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean))
with N, df and the mean length counted among the texts the reader may see. The idf is the form
that is never negative (Lucene's), so that every match has a positive score.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from memory.search.analysis import Analysis

K1 = 1.2
B = 0.75


def inverse_document_frequency(documents: int, containing: int) -> float:
    """Weight of a lexeme that `containing` of `documents` texts hold; always above 0."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


def lexeme_score(weight: float, frequency: int, length: int, mean_length: float) -> float:
    """What one lexeme adds to the score of a text that holds it `frequency` times."""
    saturation = K1 * (1 - B + B * length / mean_length)
    return weight * frequency * (K1 + 1) / (frequency + saturation)


class Bm25:
    """An index over analysed texts, held in memory; exact, and meant for comparison."""

    def __init__(self, analyses: Mapping[str, Analysis]) -> None:
        self._lengths = {name: analysis.length for name, analysis in analyses.items()}
        self._postings: dict[str, dict[str, int]] = {}
        for name, analysis in analyses.items():
            for lexeme, frequency in analysis.frequencies.items():
                self._postings.setdefault(lexeme, {})[name] = frequency
        self._mean_length = sum(self._lengths.values()) / len(analyses) if analyses else 0.0

    def scores(self, question: Iterable[str]) -> dict[str, float]:
        """Score of every text that holds any lexeme of the question; repeats count once."""
        totals: dict[str, float] = {}
        for lexeme in dict.fromkeys(question):
            postings = self._postings.get(lexeme, {})
            weight = inverse_document_frequency(len(self._lengths), len(postings))
            for name, frequency in postings.items():
                added = lexeme_score(weight, frequency, self._lengths[name], self._mean_length)
                totals[name] = totals.get(name, 0.0) + added
        return totals

    def best(self, question: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """The `limit` best texts with their scores, highest first, ties by name."""
        ranked = sorted(self.scores(question).items(), key=lambda pair: (-pair[1], pair[0]))
        return ranked[:limit]
