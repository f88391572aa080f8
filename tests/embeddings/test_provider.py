"""Which models an installation has, by its settings and by registration."""

import subprocess
import sys
from collections.abc import Sequence

import pytest
from django.core.exceptions import ImproperlyConfigured

from memory.embeddings import provider as registry
from memory.embeddings.provider import (
    EmbeddingModelMissing,
    EmbeddingProvider,
    EmbeddingUnavailable,
    available_models,
    configuration,
    default_model,
    get_provider,
    provider_registered,
)

BUILT_IN = "all-MiniLM-L6-v2-int8"


class OneDirection:
    """A provider whose every vector is the same."""

    is_local = True
    dimensions = 2

    def __init__(self, model: str) -> None:
        self.model = model

    def embed(
        self, texts: Sequence[str], *, timeout_seconds: float | None = None
    ) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]


@pytest.fixture
def embeddings(settings):
    """Set the KINDMEM_EMBEDDINGS settings of a test."""

    def choose(choice, url="", model="", key="", dimensions=0):
        settings.KINDMEM_EMBEDDINGS = choice
        settings.KINDMEM_EMBEDDINGS_URL = url
        settings.KINDMEM_EMBEDDINGS_MODEL = model
        settings.KINDMEM_EMBEDDINGS_KEY = key
        settings.KINDMEM_EMBEDDINGS_DIMENSIONS = dimensions

    choose("minilm")
    return choose


def test_the_built_in_model_is_the_default(embeddings):
    assert available_models() == (BUILT_IN,)
    assert default_model() == BUILT_IN
    assert get_provider() is get_provider(BUILT_IN)
    assert get_provider().dimensions == 384
    assert get_provider().is_local
    assert isinstance(get_provider(), EmbeddingProvider)


def test_with_none_there_is_no_model_and_asking_for_one_says_so(embeddings):
    embeddings("none", url="https://models.example/v1", model="m")
    assert available_models() == ()
    assert default_model() is None
    with pytest.raises(EmbeddingModelMissing):
        get_provider()
    with pytest.raises(EmbeddingModelMissing):
        get_provider(BUILT_IN)


def test_an_unknown_model_is_missing_which_is_a_kind_of_unavailable(embeddings):
    with pytest.raises(EmbeddingUnavailable) as caught:
        get_provider("nobody-has-this")
    assert caught.value.code == "embedding-model-missing"
    assert caught.value.model == "nobody-has-this"


def test_an_endpoint_as_default_leaves_the_built_in_model_answering(embeddings):
    embeddings("openai", url="https://models.example/v1", model="text-embedding-3-small")
    assert available_models() == ("text-embedding-3-small", BUILT_IN)
    assert not get_provider().is_local
    assert get_provider().dimensions == 1536
    assert get_provider(BUILT_IN).is_local


def test_going_back_to_the_built_in_model_leaves_the_endpoint_answering(embeddings):
    embeddings("minilm", url="https://models.example/v1", model="m", dimensions=256)
    assert available_models() == (BUILT_IN, "m@256")
    assert get_provider("m@256").dimensions == 256


def test_the_same_settings_give_the_same_provider_and_other_settings_another(embeddings):
    embeddings("openai", url="https://models.example/v1", model="m")
    first = get_provider()
    assert get_provider() is first
    embeddings("openai", url="https://models.example/v2", model="m")
    assert get_provider() is not first


def test_two_registered_models_answer_beside_the_configured_one(embeddings):
    with provider_registered(OneDirection("one")), provider_registered(OneDirection("two")):
        assert available_models() == (BUILT_IN, "one", "two")
        assert get_provider("two").embed(["x"]) == [[1.0, 0.0]]
    assert available_models() == (BUILT_IN,)


def test_a_registered_model_can_be_the_default_even_with_none(embeddings):
    embeddings("none")
    with provider_registered(OneDirection("one"), as_default=True):
        assert default_model() == "one"
    assert default_model() is None


@pytest.mark.parametrize(
    ("choice", "url", "model"),
    [("best", "", ""), ("openai", "", "m"), ("openai", "https://models.example/v1", "")],
)
def test_settings_that_can_not_work_are_refused(embeddings, choice, url, model):
    embeddings(choice, url=url, model=model)
    with pytest.raises(ImproperlyConfigured):
        configuration()


@pytest.mark.parametrize(
    "url", ["http://models.example/v1", "ftp://models.example", "https://me@models.example/v1", "x"]
)
def test_an_address_that_is_neither_https_nor_loopback_is_refused(embeddings, url):
    embeddings("openai", url=url, model="m")
    with pytest.raises(ImproperlyConfigured):
        get_provider()


def test_the_key_is_in_no_representation(embeddings):
    embeddings("openai", url="https://models.example/v1", model="m", key="sk-secret")
    assert "sk-secret" not in repr(configuration())
    assert "sk-secret" not in repr(get_provider())


def test_without_its_packages_the_built_in_model_is_not_offered(embeddings, monkeypatch):
    monkeypatch.setattr(registry, "_built", {})
    monkeypatch.setattr(registry, "BUILT_IN_PACKAGES", ("a_package_that_is_not_there",))
    assert available_models() == ()


def test_neither_numpy_nor_the_model_is_loaded_before_the_first_text():
    program = (
        "import sys; from django.conf import settings; settings.configure(); "
        "from memory.embeddings.provider import get_provider; get_provider(); "
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
