"""`seqconv serve` as the clients and tools of others see it, over loopback."""

import asyncio
import json
import sys
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families
from referencing import Registry, Resource

sys.path[:0] = [str(Path(__file__).parents[1] / "cli")]
from serve_support import FOLDERS, Server  # noqa: E402
from serve_test import free_port, models, translated  # noqa: E402

GERMAN = "Der kleine Hund schläft heute den ganzen Tag auf dem Sofa im Wohnzimmer."


@pytest.fixture(scope="module")
def server():
    port = free_port()
    flags = ["--language-model", f"book={FOLDERS / 'language_1'}", "--metrics-port", port]
    with Server(*models("de-en", "en-de"), *flags) as server:
        yield server


def test_libretranslatepy(server):
    from libretranslatepy import LibreTranslateAPI

    client = LibreTranslateAPI(server.url)
    assert client.translate("dalan mira", "de", "en") == translated("de-en", "dalan mira")
    assert client.detect(GERMAN)[0]["language"] == "de"
    assert [one["code"] for one in client.languages()] == ["de", "en"]


def test_libretranslate_aio(server):
    from libretranslate_aio import AsyncLibreTranslate, LibreTranslate

    with LibreTranslate(base_url=server.url) as client:
        wanted = translated("de-en", "dalan mira")
        assert client.translate("dalan mira", "de", "en").translated_text == wanted
        lists = client.translate(["dalan mira", "zo"], "de", "en", alternatives=1)
        assert len(lists.translated_text) == 2 and len(lists.alternatives) == 2
        found = client.translate(GERMAN, "auto", "en")
        assert found.detected_language.language == "de"
        html = client.translate("<p>zo <b>mira</b></p>", "de", "en", format="html")
        assert html.translated_text.startswith("<p>")
        assert client.detect(GERMAN)[0].language == "de"
        assert client.languages()[0].targets == ["en"]
        assert client.frontend_settings().char_limit == 100_000
        assert client.health() is True
        with pytest.raises(Exception, match="suggestions") as refused:
            client.suggest("a", "b", "de", "en")
        assert refused.value.status_code == 403
        with pytest.raises(Exception, match="zz is not supported") as refused:
            client.translate("zo", "zz", "en")
        assert refused.value.status_code == 400

    async def together():
        async with AsyncLibreTranslate(base_url=server.url) as client:
            return await asyncio.gather(*(client.translate("zo", "de", "en") for _ in range(20)))

    texts = {one.translated_text for one in asyncio.run(together())}
    assert texts == {translated("de-en", "zo")}


def test_deep_translator(server):
    from deep_translator import LibreTranslator

    client = LibreTranslator(source="de", target="en", api_key="any", custom_url=server.url + "/")
    assert client.translate("dalan mira") == translated("de-en", "dalan mira")
    assert client.translate_batch(["zo", "mira"]) == [translated("de-en", one)
                                                      for one in ("zo", "mira")]  # fmt: skip


def spec_of(server):
    return json.loads(server.request("GET", "/spec")[2])


def test_the_spec_is_openapi(server):
    validate(spec_of(server))


def schemas(spec):
    """A validator for a schema of the document."""
    registry = Registry().with_resource(
        "urn:spec", Resource.from_contents(spec | {"$schema": "https://json-schema.org/draft/2020-12/schema"}))

    def check(schema, value):
        text = json.dumps(schema).replace("#/components", "urn:spec#/components")
        Draft202012Validator(json.loads(text), registry=registry).validate(value)

    return check


def test_the_examples_of_the_spec_are_answered_as_it_says(server):
    spec = spec_of(server)
    check = schemas(spec)
    count = 0
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {})
            if "$ref" in body:
                body = spec["components"]["requestBodies"][body["$ref"].split("/")[-1]]
            media = body.get("content", {}).get("application/json", {})
            examples = [one["value"] for one in media.get("examples", {}).values()]
            examples += [media["example"]] if "example" in media else []
            wanted = operation["responses"]["200"].get("content", {}).get("application/json")
            for example in examples or [None]:
                if example is not None:
                    check(media["schema"], example)
                status, _, answer = server.request(
                    method.upper(), path, None if example is None else json.dumps(example),
                    {"Content-Type": "application/json"})  # fmt: skip
                assert status == 200, (path, example, answer)
                if wanted:
                    check(wanted["schema"], json.loads(answer))
                count += 1
    assert count > 10


def test_faults_are_as_the_spec_says(server):
    spec = spec_of(server)
    for path in ("/translate", "/translate/stream", "/detect", "/generate"):
        status, answer = server.post(path)
        assert str(status) in spec["paths"][path]["post"]["responses"]
        schemas(spec)(spec["components"]["schemas"]["Error"], answer)


def test_prometheus_reads_the_metrics(server):
    server.post("/translate", q="zo", source="de", target="en")
    time.sleep(0.1)
    text = server.request("GET", "/metrics", port=server.ports["metrics"])[2].decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["seqconv_requests"].type == "counter"
    assert families["seqconv_request_seconds"].type == "histogram"
    assert families["process_resident_memory_bytes"].samples[0].value > 1e6
    labels = {name for family in families.values() for one in family.samples for name in one.labels}
    assert labels == {"route", "status", "le", "model", "source", "target"}
