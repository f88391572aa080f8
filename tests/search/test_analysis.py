"""What a text is cut into: what people type must find what was written."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.search import analysis as rules
from memory.search.analysis import (
    LANGUAGES,
    MAX_DISTINCT_LEXEMES,
    MAX_LEXEME_BYTES,
    MAX_QUESTION_LEXEMES,
    UnknownLanguage,
    analyse,
    analyse_query,
)


def _found(question, text, language="english"):
    return bool(set(analyse_query(question, language)) & set(analyse(text, language).frequencies))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("mia.li3818@example.com", "Contact: mia.li3818@example.com."),
        ("MIA.LI3818@EXAMPLE.COM", "Contact: mia.li3818@example.com."),
        ("li3818", "Contact: mia.li3818@example.com."),
        ("2024-05-20", "Departure on 2024-05-20, early."),
        ("2024-05-20", "Departure at 2024-05-20T15:00:00Z"),
        ("15:00:00Z", "Departure at 2024-05-20T15:00:00Z"),
        ("2024", "Departure on 2024-05-20"),
        ("HAT170", "flight hat170 is late"),
        ("#W123", "order #W123"),
        ("W123", "order #W123"),
        ("reservation_id", '{"reservation_id":"4WQ150"}'),
        ("reservation", '{"reservation_id":"4WQ150"}'),
        ("4wq150", '{"reservation_id":"4WQ150"}'),
        ("reservationId", "the reservationId field"),
        ("reservation", "the reservationId field"),
        ("http request", "XMLHttpRequest failed"),
        ("C++", "she writes C++ and C#"),
        ("c#", "she writes C++ and C#"),
        ("1234", "it cost $1,234"),
        ("1,234.50", "it cost 1234.50"),
        ("121", "a price of $121."),
        ("example.com", "see https://www.example.com/path?x=1"),
        ("path", "see https://www.example.com/path?x=1"),
        ("well-known", "a well-known fact"),
        ("known", "a well-known fact"),
        ("NY", "from NY to LA"),
        ("x", "the value of x"),
        ("7", "seat 7"),
        ("dont", "we don't fly"),
        ("don’t", "we don't fly"),
        ("John", "John's dog"),
        ("O'Brien", "Mr O’Brien called"),
        ("brien", "Mr O’Brien called"),
        ("__init__", "the file __init__ holds it"),
        ("192.168.0.1", "host 192.168.0.1 answered"),
    ],
)
def test_codes_addresses_dates_and_names_are_found_whole_and_in_part(question, text):
    assert _found(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("成語", "今日は成語しりとりをした"),
        ("しりとり", "今日は成語しりとりをした"),
        ("猫", "黒猫がいる"),
        ("ﾈｺ", "ネコがいる"),
        ("東京都", "東京都庁"),
        ("검색", "한국어검색엔진"),
        ("한", "한국어"),
        ("航班", "您的航班已取消"),
        ("กรุงเทพ", "เที่ยวบินไปกรุงเทพ"),
        ("東京HAT170便", "HAT170"),
    ],
)
def test_scripts_without_spaces_are_found_by_two_characters_or_one(question, text):
    assert _found(question, text, "simple")


def test_a_pair_that_does_not_stand_in_the_text_does_not_match():
    assert not _found("語成", "今日は成語しりとりをした", "simple")


@pytest.mark.parametrize(
    ("question", "text", "language"),
    [
        ("cafe", "un café noir", "french"),
        ("café", "un cafe noir", "french"),
        ("resume", "her résumé", "english"),
        ("CAFÉ", "cafe\u0301", "english"),
        ("STRASSE", "Hauptstraße Straße", "german"),
        ("Zuge", "viele Züge", "german"),
        ("Malmo", "i Malmö", "swedish"),
        ("smorrebrod", "smørrebrød", "danish"),
        ("lodz", "Łódź", "simple"),
        ("istanbul", "İSTANBUL", "turkish"),
        ("ΟΔΟΣ", "οδός", "greek"),
        ("москве", "Москва", "russian"),
        ("елка", "ёлка", "russian"),
        ("محمد", "مُحَمَّد", "arabic"),
        ("احمد", "أحمد", "arabic"),
        ("123", "رقم ١٢٣", "arabic"),
        ("שלום", "שָׁלוֹם", "simple"),
        ("हिन्दी", "हिन्दी भाषा", "hindi"),
        ("Air", "Ａｉｒ", "english"),
        ("file", "the \ufb01le", "english"),
    ],
)
def test_accents_forms_and_cases_of_a_word_are_one_word(question, text, language):
    assert _found(question, text, language)


@pytest.mark.parametrize(
    ("question", "text", "language"),
    [
        ("cancelled flights", "cancelling a flight", "english"),
        ("Buchung", "die Buchungen", "german"),
        ("réservation", "mes réservations", "french"),
        ("vuelo", "los vuelos", "spanish"),
    ],
)
def test_inflected_words_share_a_stem_in_their_language(question, text, language):
    assert _found(question, text, language)
    assert not _found(question.split()[0], text, "simple")


def test_a_code_is_never_stemmed():
    assert "as4cancels" in analyse("AS4CANCELS", "english").frequencies


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_of_the_list_cuts_a_text(language):
    assert _found("Memory 記憶 память", "память memory 記憶", language)


def test_an_unknown_language_is_refused():
    for cut in (analyse, analyse_query):
        with pytest.raises(UnknownLanguage):
            cut("text", "klingon")


def test_invisible_characters_neither_hide_a_word_nor_split_it():
    hidden = "\u202epass\u200bword\u2069 for\ufeffget\u00ad \U000e0041done"
    assert list(analyse(hidden, "simple").frequencies) == ["password", "forget", "done"]


def test_emoji_and_flags_are_lexemes_and_their_variants_are_one():
    frequencies = analyse("🦆 🇩🇪🇫🇷 👍🏽👍 ❤️❤", "simple").frequencies
    assert frequencies == {"🦆": 1, "🇩🇪": 1, "🇫🇷": 1, "👍": 2, "❤": 2}


def test_counts_and_length_are_those_of_the_text():
    analysed = analyse("bag bags BAG, seat", "english")
    assert analysed.frequencies == {"bag": 3, "seat": 1}
    assert (analysed.length, analysed.truncated) == (4, False)


def test_a_question_leaves_out_words_that_only_hold_it_together():
    assert analyse_query("What is the price of the ticket for Mia?", "english") == [
        "price",
        "ticket",
        "mia",
    ]


def test_a_question_of_such_words_alone_keeps_them():
    assert analyse_query("who is it", "english") == ["who", "is", "it"]
    assert _found("The Who", "we listened to The Who")


def test_a_question_keeps_its_negation():
    assert "never" in analyse_query("never call", "english")
    assert "not" in analyse_query("do not call", "english")


def test_blank_text_and_text_of_punctuation_have_no_lexemes():
    for text in ("", " \n\t", "--- ... !!! ,,, ___", "\u0301", "\u200b\u200e"):
        assert analyse(text, "english").frequencies == {}
        assert analyse_query(text, "english") == []


def test_a_200_kb_word_is_one_small_lexeme_and_is_found_by_itself():
    word = "x" * 200_000
    assert len(analyse(word, "english").frequencies) == 1
    assert _found(word, f"before {word} after")
    assert not _found("y" * 200_000, word)


def test_two_long_words_with_one_beginning_stay_apart():
    assert not _found("x" * 100 + "a", "x" * 100 + "b")


def test_a_text_of_more_words_than_the_bound_is_cut_and_says_so():
    analysed = analyse(" ".join(f"w{n}" for n in range(10_000)), "english")
    assert len(analysed.frequencies) == MAX_DISTINCT_LEXEMES
    assert analysed.length == MAX_DISTINCT_LEXEMES
    assert analysed.truncated


def test_a_question_has_a_bounded_number_of_lexemes():
    assert len(analyse_query(" ".join(f"w{n}" for n in range(1_000)), "english")) == (
        MAX_QUESTION_LEXEMES
    )


@pytest.mark.parametrize(
    "repeated",
    [
        *("x", "a-", "aA", "1,111", "a'", "_", "a:::::::", ".b", "#@", "' ", "\\", "a\0"),
        *("2024-05-20T15:00", "語彙", "äÖ", "हि", "🦆", "e\u0301", "\u0301", "\u200b", "\ufdfa"),
        "\ud800a",
    ],
)
def test_no_repetition_takes_long_or_fills_the_index(repeated):
    text = (repeated * (200_000 // len(repeated) + 1))[:200_000]
    started = time.process_time()
    analysed = analyse(text, "english")
    question = analyse_query(text, "english")
    # The slowest takes 0.3 s on a slow core; a quadratic one would take minutes.
    assert time.process_time() - started < 5
    assert len(analysed.frequencies) <= 12
    assert len(question) <= 12


@given(st.text(st.characters(codec=None)), st.sampled_from(["english", "simple", "turkish"]))
def test_any_text_gives_lexemes_that_the_database_takes(text, language):
    analysed = analyse(text, language)
    for lexeme in [*analysed.frequencies, *analyse_query(text, language)]:
        assert 1 <= len(lexeme.encode()) <= MAX_LEXEME_BYTES
        assert "\0" not in lexeme
        assert not any(character.isspace() for character in lexeme)
    assert analysed.length == sum(analysed.frequencies.values())


@given(st.text(), st.sampled_from(["english", "german", "simple"]))
def test_any_text_is_found_by_itself(text, language):
    assert set(analyse_query(text, language)) <= set(analyse(text, language).frequencies)


@given(st.text(), st.text())
def test_a_text_is_found_inside_a_longer_one(text, more):
    found = set(analyse_query(text, "english"))
    assert found <= set(analyse(f"{more}\n{text}\n{more}", "english").frequencies)


@given(st.text())
def test_case_does_not_matter_to_ascii_words(text):
    plain = "".join(character for character in text if character.isascii()).lower()
    assert set(analyse_query(plain.upper(), "english")) == set(analyse_query(plain, "english"))


def test_threads_share_no_stemmer():
    words = [f"{'abcdefgh'[n % 8]}{'ing' * (n % 3)}ness{'ly' * (n % 2)}s" for n in range(400)]
    rules._stems.cache_clear()
    expected = [rules._stem(word, "english") for word in words]
    got: dict[int, list[str]] = {}
    barrier = threading.Barrier(4)

    def stem(place):
        barrier.wait()
        got[place] = [rules._stem(word, "english") for word in words]

    threads = [threading.Thread(target=stem, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(got[place] == expected for place in range(4))


def test_identifiers_are_not_kept_in_the_cache_of_stems():
    rules._stems.cache_clear()
    rules._letters_cached.cache_clear()
    analyse("W123456 2024-05-20 4421486 " + "k" * 40, "english")
    assert rules._stems.cache_info().currsize == 0
    assert rules._letters_cached.cache_info().currsize == 0
