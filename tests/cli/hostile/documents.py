"""Bad documents, for training and for summarising: JSON lines and stories."""

import functools
import json

import support
from hostile.case import GARBAGE, LONG, TRANSLATE, Case, written

GOOD = '{"in": {"text": "1 2"}, "out": "eins\\nzwei"}\n'
STORY = "1 2\n\n@highlight\n\neins\n\n@highlight\n\nzwei\n"
JSON_KEYS = {"source_key": "in.text", "target_key": "out"}


def training(name, code, *wanted, keys=None, dry=False, more=(), **data):
    """A run on files that hold both sides, and nothing else."""
    settings = {"train_source": [], "train_target": [], "valid_source": [],
                "valid_target": [], **(JSON_KEYS if keys is None else keys),
                **data}
    arguments = ["train", support.config(), "--output",
                 support.scratch() / f"documents-{name.replace(' ', '-')}"]
    for key, value in settings.items():
        arguments += ["--set", f"data.{key}={json.dumps(value)}"]
    for assignment in more:
        arguments += ["--set", assignment]
    return Case(f"documents: {name}", arguments + ["--dry-run"] * dry, code,
                *wanted)


def named(name, content):
    return str(written(f"documents/{name}", content))


def json_to_train_on():
    def case(name, line, code, *wanted):
        if isinstance(line, str):
            line = line.encode()
        file = named(f"{name}.jsonl", GOOD.encode() * 2 + line + b"\n")
        return training(name, code, *wanted, train=file)

    for name, line, *wanted in (
        ("no JSON", "hello", "not valid JSON"),
        ("cut", GOOD[:20], "not valid JSON"),
        ("a list", "[1]", "JSON object"),
        ("a string", '"1"', "JSON object"),
        ("no source", '{"out": "eins"}', 'no "in.text"'),
        ("no target", '{"in": {"text": "1"}}', 'no "out"'),
        ("source not nested", '{"in": "1", "out": "eins"}', 'no "in.text"'),
        ("source of a number", '{"in": {"text": 1}, "out": "eins"}',
         '"in.text" must be a text', "but got 1"),
        ("target of null", '{"in": {"text": "1"}, "out": null}',
         '"out" must be a text', "null"),
        ("target of an object", '{"in": {"text": "1"}, "out": {}}',
         '"out" must be a text', "object"),
        ("source of no lines", '{"in": {"text": []}, "out": "eins"}',
         '"in.text" must be a text'),
        ("two targets", '{"in": {"text": "1"}, "out": ["eins", "zwei"]}',
         "a list of 2", '"out.0"'),
        ("twins", '{"in": {"text": "1"}, "out": "a", "out": "b"}',
         "'out' comes twice"),
        ("a NUL", '{"in": {"text": "1 \\u0000"}, "out": "eins"}', "NUL"),
        ("half a surrogate", '{"in": {"text": "\\ud800"}, "out": "eins"}',
         "not valid JSON"),
        ("deep", '{"in": ' + "[" * LONG, "nested too deep"),
        ("invalid UTF-8", b'{"in": {"text": "\xff"}, "out": "eins"}', "UTF-8"),
        ("a real NUL", b'{"in": {"text": "\0"}, "out": "eins"}', "NUL"),
        ("garbage", GARBAGE.replace(b"\n", b" "), ""),
    ):
        yield case(name, line, 1, f"{name}.jsonl:3", *wanted)
    yield case("an empty source", '{"in": {"text": " \\n "}, "out": "eins"}', 0)
    yield case("an empty target", '{"in": {"text": "1"}, "out": ""}', 0)
    yield case("a long line", json.dumps(
        {"in": {"text": "1\n" * LONG}, "out": "eins"}), 0)
    yield training("all empty", 1, "no pairs to learn from", "2 have an empty",
                   train=named("empty.jsonl", GOOD.replace("1 2", "") * 2),
                   more=["text.subword=characters"])
    yield training("no line", 1, "none.jsonl", train=named("none.jsonl", ""))
    yield training("no file", 1, "data.train", "nowhere.jsonl",
                   train="nowhere.jsonl")
    yield training("bad validation text", 1, "valid.jsonl:1", "not valid JSON",
                   train=named("one.jsonl", GOOD),
                   valid=named("valid.jsonl", "x\n"))


def keys_of_documents():
    good = named("good.jsonl", GOOD)
    stories = str(support.scratch())
    for name, data, *wanted in (
        ("one key", {"keys": {"source_key": "in.text"}, "train": good},
         "data.target_key", "only data.source_key"),
        ("the same key", {"keys": {"source_key": "out", "target_key": "out"},
                          "train": good}, "must differ", "'out'"),
        ("no key", {"keys": {}, "train": good}, "data.source_key"),
        ("JSON and stories", {"stories": stories, "train": good},
         "data.source_key", "data.stories"),
        ("keys of no file", {}, "data.source_key", "name no file"),
        ("stories of no list", {"keys": {"stories": stories}}, "data.stories"),
        ("binarised JSON", {"train": "a.bin"}, "data.train", "'a.bin'"),
        ("one side beside", {"train": good, "train_source": "x"},
         "data.train_source and data.train_target"),
        ("a cut of nothing", {"train": good, "max_source_tokens": 1},
         "data.max_source_tokens"),
        ("a cut beyond positions", {"train": good, "max_target_tokens": 2000},
         "data.max_target_tokens", "max_positions"),
    ):
        yield training(name, 2, *wanted, dry=True, **data)
    for key, value in (("source_key", "a"), ("target_key", "a"),
                       ("stories", "a"), ("max_source_tokens", "9")):
        yield Case(f"language model with data.{key}",
                   ["train", support.language_config(), "--dry-run", "--set",
                    f"data.{key}={value}"], 2, f"data.{key}", "translation")


def stories_to_train_on():
    folder = support.scratch() / "documents/stories"
    for name, content in (
        ("good.story", STORY), ("plain.story", "1 2\n"),
        ("hollow.story", "1 2\n@highlight\n\n"),
        ("no article.story", STORY[STORY.index("@"):]),
        ("bytes.story", b"1\n\xff\n@highlight\neins\n"),
        ("nul.story", b"1\0\n@highlight\neins\n"), ("empty.story", ""),
        ("folder.story/x", ""),
    ):
        written(f"documents/stories/{name}", content)

    def case(name, line, code, *wanted, folders=folder):
        return training(f"stories: {name}", code, *wanted,
                        keys={"stories": str(folders)},
                        train=named(f"{name}.list", f"good.story\n{line}\n"))

    for name, line, *wanted in (
        ("no highlight", "plain", "plain.story", "@highlight"),
        ("no text below", "hollow.story", "hollow.story", "@highlight"),
        ("nothing in it", "empty", "empty.story", "@highlight"),
        ("not there", "lost", "'lost'", str(folder)),
        ("a folder", "folder", "'folder'"),
        ("a blank name", "", "blank"),
        ("a long name", "x" * LONG, "no story"),
    ):
        yield case(name, line, 1, f"{name}.list:2", *wanted)
    yield case("bad bytes", "bytes", 1, "bytes.story:2", "UTF-8")
    yield case("a NUL inside", "nul", 1, "nul.story:1", "NUL")
    yield case("no article", "no article", 0)
    yield case("no such folder", "good", 1, "nowhere", folders="nowhere")


@functools.cache
def summariser():
    """A model that was trained on JSON."""
    case = training("a summariser", 0, train=named("three.jsonl", GOOD * 3))
    assert case.complaint() is None, case.complaint()
    return case.arguments[case.arguments.index("--output") + 1]


def documents_to_summarise():
    base = ["summarise", "--model", summariser(), *TRANSLATE]
    for name, line in (
        ("no JSON", "hello"), ("cut", '{"in": {"text"'), ("a list", "[1]"),
        ("null", "null"), ("no document", "{}"),
        ("a document not nested", '{"in": "1"}'),
        ("a document of a number", '{"in": {"text": 1}}'),
        ("a document of no lines", '{"in": {"text": []}}'),
        ("lines and numbers", '{"in": {"text": ["1", 2]}}'),
        ("twins", '{"in": {"text": "1"}, "in": {"text": "2"}}'),
        ("twins inside", '{"in": {"text": "1", "text": "2"}}'),
        ("deep", '{"in": {"text": "1"}, "a": ' + "[" * LONG),
        ("half a surrogate", '{"in": {"text": "\\ud800"}}'),
    ):
        yield Case(f"document is {name}", base, 1, "standard input:2",
                   stdin=f'{{"in": {{"text": "1"}}}}\n{line}\n'.encode())
    for name, line in (
        ("a blank line before it", '\n{"in": {"text": "1"}}'),
        ("an empty text", '{"in": {"text": " "}}'),
        ("a NUL", '{"in": {"text": "1 \\u0000"}}'),
        ("a huge number beside", '{"in": {"text": "1"}, "a": 1e999}'),
        ("an old summary", '{"in": {"text": "1"}, "summary_text": [{}]}'),
        ("a long document", json.dumps({"in": {"text": "1\n" * LONG}})),
        ("invalid UTF-8", b'{"in": {"text": "\xff"}}'),
    ):
        if isinstance(line, str):
            line = line.encode()
        yield Case(f"document with {name}", base, 0, stdin=line + b"\n")
    stories = support.scratch() / "documents/stories"
    listed = [*base, "--input-format", "story", "--stories", stories]
    written("documents/stories/good.story", STORY)
    written("documents/stories/bytes.story", b"1\n\xff\n@highlight\neins\n")
    for name, line in (("lost", "lost"), ("blank", " "), ("NUL", "\0"),
                       ("of bad bytes", "bytes"), ("a folder", ".")):
        yield Case(f"story to summarise: {name}", listed, 1,
                   "standard input:2", stdin=f"good\n{line}\n".encode())


def flags_of_summaries():
    json_model = ["summarise", "--model", summariser()]
    text_model = ["summarise", "--model", support.model()]
    for arguments, *wanted in (
        ([*json_model, "--input-format", "jsonl"], "--input-format", "'json'"),
        ([*json_model, "--input-format", "text", "--source-key", "a"],
         "--source-key", "text"),
        ([*json_model, "--stories", "."], "--stories", "json"),
        ([*json_model, "--input-format", "story"], "--stories"),
        ([*json_model, "--summary-key", ""], "--summary-key"),
        ([*json_model, "--summary-key", "in"], "--summary-key", "'in'"),
        ([*json_model, "--summary-key", "error"], "--summary-key", "failed"),
        ([*json_model, "--summary-key", "line"], "--summary-key", "failed"),
        ([*text_model, "--summary-key", "s"], "--summary-key", "--format"),
        ([*json_model, "--input", "a.bin"], "a.bin", "json"),
        ([*text_model, "--input-format", "json"], "--source-key"),
        ([*text_model, "--summary-key", "text"], "--summary-key"),
        ([*text_model, "--input-format", "story", "--stories", ".",
          "--summary-key", "article"], "--summary-key"),
        ([*text_model, "--json-input"], "--json-input"),
        ([*text_model, "--format", "xml"], "--format"),
    ):
        yield Case(f"summarise {arguments[3:]}", arguments, 2, *wanted,
                   stdin=b"1\n")


FAMILIES = [
    json_to_train_on,
    keys_of_documents,
    stories_to_train_on,
    documents_to_summarise,
    flags_of_summaries,
]
