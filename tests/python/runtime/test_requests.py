"""Texts in, dataclasses out."""

import asyncio
import contextlib
import copy
import ctypes
import dataclasses
import gc
import itertools
import math
import pickle

import pytest

import seqconv
from conftest import LANGUAGE_MODEL, MODEL, PROTECTED
from seqconv import Tokens, _c, _options


def test_a_text_is_translated(translator):
    found = translator.translate("dalan mira")
    assert found.ok and found.text == str(found) == found.best.text != ""
    assert found.tokens[-1] == "</s>"
    assert len(found.best.token_scores) == len(found.tokens)
    assert sum(found.best.token_scores) == pytest.approx(found.best.log_probability, rel=1e-5)
    assert found.alignment is None and found.notes == []


def test_a_list_has_a_result_for_each(translator):
    texts = ["dalan", "mira dalan", "", "zo"] * 5
    found = translator.translate(texts)
    assert [one.text for one in found] == [translator.translate(text).text for text in texts]
    assert translator.translate([]) == []


def test_iterables_are_of_any_length(translator):
    texts = itertools.islice(itertools.cycle(["dalan", "mira"]), 2500)
    found = [one.text for one in translator.translate_iter(texts)]
    assert len(found) == 2500
    assert found[:2] == [one.text for one in translator.translate(["dalan", "mira"])]
    # No more is read than is wanted soon.
    endless = translator.translate_iter(itertools.repeat("dalan"))
    assert next(endless).text == found[0]
    endless.close()


def test_options_are_heeded(translator):
    assert len(translator.translate("dalan mira", beam=4, n_best=3).hypotheses) == 3
    assert translator.translate("dalan", target_prefix="zo mira").text.startswith("zo mira")
    assert len(translator.translate("dalan", max_length_b=2, min_length=2).tokens) == 3
    draws = [translator.translate("dalan mira", sample=True, temperature=2, seed=seed).text
             for seed in (1, 2, 3, 1)]
    assert draws[0] == draws[3] and len(set(draws)) > 1
    assert translator.translate("dalan", beam=None).text == translator.translate("dalan").text


def test_terms_come_out_as_told(translator, tmp_path):
    terms = {"mira": "tolu kebana"}
    for options in ({"terms": terms}, {"terms": list(terms.items())}):
        assert "tolu kebana" in translator.translate("dalan mira", **options).text
        both = translator.translate(["mira", "dalan"], **options)
        assert "tolu kebana" in both[0].text and "tolu kebana" not in both[1].text
    file = tmp_path / "terms.tsv"
    file.write_text("mira\ttolu kebana\n")
    with seqconv.Translator(MODEL, terminology=file) as own:
        assert "tolu kebana" in own.translate("dalan mira").text
        found = own.translate("dalan mira", terms={"mira": "zo so"}).text
        assert "zo so" in found and "tolu kebana" not in found
    with pytest.raises(TypeError, match="terms must be a dict from str to str"):
        translator.translate("mira", terms={"mira": 1})
    with pytest.raises(seqconv.RequestError, match="not of draws"):
        translator.translate("mira", terms=terms, sample=True)


def test_tokens_go_in_and_out(translator):
    text = "dalan mira"
    tokens = translator.tokenize(text)
    assert tokens == ["dalan", "mira"] and isinstance(tokens, Tokens)
    found = translator.translate(tokens, alignments="pairs")
    assert found.text == translator.translate(text).text
    assert found.alignment == translator.translate(text, alignments="pairs").alignment
    assert translator.detokenize(found.tokens) == found.text
    assert translator.translate([Tokens(["mira"]), "mira"])[0].text == translator.translate("mira").text
    assert translator.tokenize("", "target") == []
    with pytest.raises(seqconv.OptionError, match="'source' or 'target'"):
        translator.tokenize("a", "left")


def test_alignments_are_of_characters(translator):
    text = "dalän  mira"
    found = translator.translate(text, alignments="shares")
    own = found.alignment
    assert own.source_tokens[-1] == "</s>"
    assert [text[begin:end] for begin, end in own.source_spans] == ["dalän", "mira", ""]
    spans = [found.text[begin:end] for begin, end in own.target_spans]
    assert "".join(spans) == found.text.replace(" ", "")
    assert str(own) == " ".join(f"{source}-{target}" for source, target in own.pairs) != ""
    assert all(sum(row) == pytest.approx(1) for row in own.shares)
    assert translator.translate(text, alignments="pairs").alignment.shares is None
    empty = translator.translate("", alignments="shares").alignment
    assert (empty.source_tokens, empty.target_spans, empty.shares) == (["</s>"], [], [])


def test_protected_pieces_are_kept():
    text = "dalan {name} mira http://a.org/b"
    with seqconv.Translator(PROTECTED) as translator:
        found = translator.translate(text, alignments="pairs", max_length_b=8)
        parts = [part.text for part in translator.stream(text, beam=1, max_length_b=8)]
    assert "{name}" in found.text and "http://a.org/b" in found.text
    assert all(note.startswith("protected piece '") for note in found.notes)
    assert parts and not any("<slot:" in part for part in parts)


def test_pairs_are_scored(scorer, translator):
    found = translator.translate("dalan mira").best
    score = scorer.score("dalan mira", found.text)
    assert score.log_probability == pytest.approx(found.log_probability, abs=1e-4)
    first, second = scorer.score_batch([("dalan", "mira"), ("\udc80", "mira")])
    assert first.log_probability < 0
    assert not second.ok and "UTF-8" in str(second.error)
    with pytest.raises(seqconv.RequestError):
        second.log_probability
    with pytest.raises(seqconv.RequestError, match="UTF-8"):
        scorer.score("dalan", "\udc80")


def test_texts_are_generated(generator):
    found = generator.generate("dalan", length=20)
    assert len(found.tokens) == len(found.token_scores) == 20
    assert sum(found.token_scores) == pytest.approx(found.log_probability, rel=1e-4)
    assert generator.generate(generator.tokenize("dalan"), length=20).text == found.text
    assert generator.generate("dalan", length=20, seed=2).text != found.text
    assert generator.detokenize(generator.tokenize("dalan\nmi")) == "dalan\nmi"


def test_documents_are_summarised(translator):
    with seqconv.Summarizer(MODEL) as summarizer:
        found = summarizer.summarize("dalan\n mira\n")
        assert found.text == translator.translate("dalan mira").text
        assert [one.text for one in summarizer.summarize(["dalan\n\nmira"])] == [found.text]
        with pytest.raises(seqconv.OptionError, match="alignments"):
            summarizer.summarize("dalan", alignments="pairs")


def test_streams_come_in_parts(translator, generator):
    with translator.stream("dalan mira zo", beam=1) as stream:
        parts = list(stream)
    assert len(parts) > 2
    assert stream.result.text.startswith(parts[-1].text)
    assert stream.result == translator.translate("dalan mira zo", beam=1)
    text = ""
    for part in (stream := generator.stream("dalan", length=30)):
        assert part.text == text[:part.kept] + part.added
        text = part.text
    assert text == stream.result.text == generator.generate("dalan", length=30).text


def test_a_stream_may_be_left(unlimited, endless):
    with unlimited.stream("dalan", **{**endless, "beam": 1}) as stream:
        first = next(stream)
    assert isinstance(stream.result.error, seqconv.RequestCancelled)
    assert first.text


def test_what_a_model_is_may_be_asked(translator, generator):
    info = translator.info
    assert info.compute == "float32" and info.models == 1 and info.max_source_tokens == 48
    assert info.parameters > 1000 and info.weight_bytes > 0
    assert generator.info.source_vocabulary == 0
    with seqconv.Translator([MODEL, MODEL]) as both:
        assert both.info.parameters == 2 * info.parameters
        assert both.translate("dalan").text == translator.translate("dalan").text


def test_odd_texts_are_results(translator):
    found = translator.translate(["dalan", "\ud800", "a\0b", "\U0001f600", " ", "\n"])
    assert [one.ok for one in found] == [True, False, True, True, True, True]
    assert isinstance(found[1].error, seqconv.RequestError)
    assert "UTF-8, but is not at byte 0" in str(found[1].error)
    with pytest.raises(seqconv.RequestError):
        found[1].text
    with pytest.raises(seqconv.RequestError):
        translator.translate("\ud800")
    assert "symbols of the text are unknown" in found[3].notes[0]
    assert found[4].text == ""


@pytest.mark.parametrize("wrong", [None, 3, b"dalan", {"a": 1}, ["dalan", 3]])
def test_wrong_types_are_named(translator, wrong):
    with pytest.raises(TypeError, match="must be"):
        translator.translate(wrong)
    with pytest.raises(TypeError, match="must be"):
        translator.stream(wrong)


def test_wrong_options_are_named(translator, generator):
    for options, error, message in [
        ({"bem": 3}, TypeError, "no option 'bem'; did you mean 'beam'"),
        ({"beam": "3"}, TypeError, "beam must be int, but got '3'"),
        ({"beam": True}, TypeError, "beam must be int, but got True"),
        ({"beam": 2**70}, seqconv.OptionError, "64 bits"),
        ({"beam": 0}, seqconv.RequestError, "beam must be between"),
        ({"length_penalty": math.nan}, seqconv.RequestError, "length_penalty"),
        ({"temperature": 0.5}, seqconv.OptionError, "sample=True"),
        ({"alignments": "soft"}, seqconv.OptionError, "none, pairs, shares"),
        ({"timeout": 0}, seqconv.OptionError, "timeout must be above 0"),
        ({"timeout": "1"}, TypeError, "timeout must be float"),
        ({"sample": True, "seed": -1}, seqconv.OptionError, "seed must be between"),
        ({"target_prefix": 3}, TypeError, "prefix must be str"),
    ]:
        with pytest.raises(error, match=message):
            translator.translate("dalan", **options)
    with pytest.raises(TypeError, match="no option 'beam'"):
        generator.generate("a", beam=3)
    with pytest.raises(seqconv.RequestError, match="length must be"):
        generator.generate("a", length=0)


def test_models_that_cannot_be_opened_are_named():
    for folder in ("/nowhere", LANGUAGE_MODEL, "", "x\udc80"):
        with pytest.raises(seqconv.ModelError):
            seqconv.Translator(folder)
    with pytest.raises(seqconv.ModelError):
        seqconv.Generator(MODEL)
    with pytest.raises(seqconv.ModelError):
        seqconv.Translator([])
    with pytest.raises(seqconv.OptionError, match="compute must be one of model"):
        seqconv.Translator(MODEL, compute="int4")
    with pytest.raises(seqconv.OptionError, match="threads must be between 0 and 1024, but got -1"):
        seqconv.Translator(MODEL, threads=-1)
    with pytest.raises(TypeError, match="threads must be int"):
        seqconv.Translator(MODEL, threads="2")
    with pytest.raises(TypeError):
        seqconv.Translator(None)
    with pytest.raises(seqconv.ModelError, match="no/such.shortlist"):
        seqconv.Translator(MODEL, shortlist="no/such.shortlist")


def test_exceptions_have_one_base():
    for name in seqconv.__all__:
        thing = getattr(seqconv, name)
        if isinstance(thing, type) and issubclass(thing, Exception):
            assert issubclass(thing, seqconv.SeqconvError), name
    assert issubclass(seqconv.RequestTimeout, TimeoutError)


def test_results_are_plain_values(translator):
    found = translator.translate("dalan", alignments="pairs")
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(TypeError, match="opened model"):
        pickle.dumps(translator)


def test_results_are_frozen_dataclasses(translator):
    found = translator.translate("dalan", alignments="pairs")
    best = found.best
    assert dataclasses.is_dataclass(found)
    assert [one.name for one in dataclasses.fields(found)] == ["error", "notes", "hypotheses"]
    assert dataclasses.asdict(found)["hypotheses"][0]["alignment"]["pairs"] == found.alignment.pairs
    assert dataclasses.replace(best, text="a") != best == dataclasses.replace(best) == (
        copy.deepcopy(best))
    assert repr(best).startswith(f"Hypothesis(text={best.text!r}, score={best.score!r}, log_prob")
    assert seqconv.Translation(None, []) == seqconv.Translation(error=None, notes=[], hypotheses=[])
    assert hash(seqconv.Part("a", "b", 1)) == hash(seqconv.Part("a", "b", 1))
    for change in (lambda: setattr(best, "text", "a"), lambda: setattr(best, "new", "a"),
                   lambda: delattr(best, "text")):  # fmt: skip
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot .* field '(text|new)'"):
            change()
    with pytest.raises(TypeError):
        seqconv.Part("a")
    with pytest.raises(TypeError, match="unhashable"):
        hash(best)
    match seqconv.Part("a", "b", 1):
        case seqconv.Part(text, added, 1):
            assert (text, added) == ("a", "b")


def test_texts_with_a_nul_are_kept_apart():
    texts = ["a\0b", "", "c"]
    array, kept = _c.texts_of(texts)
    assert _c.strings_of(ctypes.addressof(array), 3) == texts
    assert _c.strings_of(ctypes.addressof(array), 1) == texts[:1]


def test_all_options_are_known():
    assert _options.TRANSLATION == set(seqconv.TranslationOptions.__annotations__)
    assert _options.GENERATION == set(seqconv.GenerationOptions.__annotations__)


def test_failures_leave_nothing_to_the_garbage_collector(translator, scorer):
    def fail(count):
        for _ in range(count):
            with contextlib.suppress(seqconv.RequestError):
                translator.translate("\ud800")
            with contextlib.suppress(seqconv.RequestError):
                scorer.score("\ud800", "a")
            with contextlib.suppress(seqconv.OptionError):
                translator.translate("a", alignments="soft")
            with contextlib.suppress(seqconv.ModelError):
                seqconv.Translator("/nowhere")

    async def fail_async(count):
        for _ in range(count):
            with contextlib.suppress(seqconv.RequestError):
                await translator.translate_async("\ud800")
            with contextlib.suppress(seqconv.OptionError):
                await translator.translate_async("a", alignments="soft")

    async def garbage():
        fail(1)
        await fail_async(1)
        gc.collect()
        gc.disable()
        try:
            fail(100)
            await fail_async(100)
            return gc.collect()
        finally:
            gc.enable()

    assert asyncio.run(garbage()) < 100
