"""Requests to `seqconv serve` and their answers, as LibreTranslate 1.9 documents its interface.

A row: name, request, status, answer. A request is (method, path) and what it sends: `json`, `form`
(pairs), `query` (pairs), or `body` with `type`. In an answer T(pair, sentence) stands for what
`seqconv translate` makes of the sentence; a function says whether the value is right.
"""

import re
from collections import namedtuple

T = namedtuple("T", "pair sentence")
Request = namedtuple("Request", "method path json form query body type headers",
                     defaults=(None, (), (), None, None, {}))  # fmt: skip


def post(path, **parts):
    return Request("POST", path, **parts)


def ask(**parameters):
    return post("/translate", json=parameters)


def error(*words):
    """{"error": …} with these words."""
    return lambda answer: set(answer) == {"error"} and all(w in answer["error"] for w in words)


def detected(language, at_least=0, at_most=100):
    return lambda found: (
        set(found) == {"confidence", "language"}
        and found["language"] == language
        and at_least <= found["confidence"] <= at_most
    )


def tagged(*tags):
    """HTML with these tags, in this order."""
    return lambda text: tuple(re.findall(r"<[^>]+>", text)) == tags


MIRA = T("de-en", "dalan mira")
ZO = T("de-en", "zo")
GERMAN = "Der kleine Hund schläft heute den ganzen Tag auf dem Sofa im Wohnzimmer."
ENGLISH = "The little dog sleeps on the sofa in the living room for the whole day."

EXCHANGES = [
    # Texts
    ("text in JSON", ask(q="dalan mira", source="de", target="en"), 200, {"translatedText": MIRA}),
    ("list in JSON", ask(q=["dalan mira", "zo"], source="de", target="en"), 200,
     {"translatedText": [MIRA, ZO]}),
    ("list of one", ask(q=["zo"], source="de", target="en"), 200, {"translatedText": [ZO]}),
    ("empty list", ask(q=[], source="de", target="en"), 200, {"translatedText": []}),
    ("empty list of a wrong language", ask(q=[], source="xx", target="en"), 400, error("xx")),
    ("empty list into a wrong language", ask(q=[], source="auto", target="xx"), 400, error("xx")),
    ("form", post("/translate", form=[("q", "dalan mira"), ("source", "de"), ("target", "en")]),
     200, {"translatedText": MIRA}),
    ("repeated q in a form", post("/translate", form=[("q", "dalan mira"), ("q", "zo"),
                                                      ("source", "de"), ("target", "en")]),
     200, {"translatedText": [MIRA, ZO]}),
    ("query string", post("/translate", query=[("q", "dalan mira"), ("source", "de"),
                                               ("target", "en")]), 200, {"translatedText": MIRA}),
    ("form of parts", post("/translate", type="multipart/form-data; boundary=b", body=(
        b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\nzo\r\n'
        b'--b\r\nContent-Disposition: form-data; name="source"\r\n\r\nde\r\n'
        b'--b\r\nContent-Disposition: form-data; name="target"\r\n\r\nen\r\n--b--\r\n')), 200,
     {"translatedText": ZO}),
    ("half a form of parts", post("/translate", type="multipart/form-data; boundary=b", body=(
        b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\nzo')), 400, error("whole")),
    ("query and form", post("/translate", query=[("source", "de"), ("target", "en")],
                            form=[("q", "zo")]), 200, {"translatedText": ZO}),
    ("the body goes before the query", post("/translate", query=[("target", "zz")], json={
        "q": "zo", "source": "de", "target": "en"}), 200, {"translatedText": ZO}),
    ("empty text", ask(q="", source="de", target="en"), 200, {"translatedText": ""}),
    ("blank text", ask(q=" \n\t ", source="de", target="en"), 200, {"translatedText": " \n\t "}),
    ("emoji stay", ask(q="👍🏽 😀", source="de", target="en"), 200, {"translatedText": "👍🏽 😀"}),
    ("numbers without a letter stay", ask(q="3.14 - 2", source="de", target="en"), 200,
     {"translatedText": "3.14 - 2"}),
    ("white space stays", ask(q="  dalan mira\n\n\tzo \n", source="de", target="en"), 200,
     {"translatedText": ["  ", MIRA, "\n\n\t", ZO, " \n"]}),
    ("line ends of forms", post("/translate", form=[("q", "zo\r\nzo"), ("source", "de"),
                                                    ("target", "en")]), 200,
     {"translatedText": [ZO, "\n", ZO]}),
    ("a number is a text in forms alone", ask(q=12, source="de", target="en"), 400, error("q")),
    ("another direction", ask(q="dalan mira", source="en", target="de"), 200,
     {"translatedText": T("en-de", "dalan mira")}),
    # Codes
    ("upper case", ask(q="zo", source="DE", target="EN"), 200, {"translatedText": ZO}),
    ("pt-BR", ask(q="zo", source="pt-BR", target="en"), 200, {"translatedText": ZO}),
    ("pb is pt-BR", ask(q="zo", source="pb", target="en"), 200, {"translatedText": ZO}),
    ("zh is zh-Hans", ask(q="zo", source="zh", target="en"), 200, {"translatedText": ZO}),
    ("zh-Hans", ask(q="zo", source="zh-Hans", target="en"), 200, {"translatedText": ZO}),
    ("zh-CN", ask(q="zo", source="zh_CN", target="en"), 200, {"translatedText": ZO}),
    ("zh-Hant is another", ask(q="zo", source="zh-Hant", target="en"), 400, error("zh-Hant")),
    # auto
    ("auto", ask(q=GERMAN, source="auto", target="en"), 200,
     {"detectedLanguage": detected("de", 50), "translatedText": lambda text: text != ""}),
    ("auto, each of a list by itself", ask(q=[GERMAN, ENGLISH], source="auto", target="fr"), 200,
     {"detectedLanguage": [detected("de", 50), detected("en", 50)],
      "translatedText": lambda texts: len(texts) == 2}),
    ("auto without a word", ask(q="😀", source="auto", target="de"), 200,
     {"detectedLanguage": detected("en", 0, 0), "translatedText": "😀"}),
    ("detect", post("/detect", json={"q": GERMAN}), 200,
     lambda found: detected("de", 50)(found[0])),
    ("detect in a form", post("/detect", form=[("q", ENGLISH)]), 200,
     lambda found: detected("en", 50)(found[0])),
    ("detect a list", post("/detect", json={"q": [GERMAN, ENGLISH]}), 200,
     lambda found: [one[0]["language"] for one in found] == ["de", "en"]),
    ("detect without q", post("/detect", json={}), 400, error("missing", "q")),
    ("detect what is hardly text", post("/detect", json={"q": "\u0000\ufffe\U0010ffff a"}), 200,
     lambda found: all(0 <= one["confidence"] <= 100 for one in found)),
    # Alternatives
    ("alternatives", ask(q="dalan mira", source="de", target="en", alternatives=2), 200,
     {"alternatives": lambda texts: 0 < len(texts) <= 2 and len(set(texts)) == len(texts),
      "translatedText": lambda text: text != ""}),
    ("alternatives of a list", ask(q=["dalan mira", "zo"], source="de", target="en",
                                   alternatives=1), 200,
     {"alternatives": lambda lists: [len(one) for one in lists] == [1, 1],
      "translatedText": lambda texts: len(texts) == 2}),
    ("alternatives as text", post("/translate", form=[
        ("q", "zo"), ("source", "de"), ("target", "en"), ("alternatives", "1")]), 200,
     {"alternatives": lambda texts: len(texts) == 1, "translatedText": lambda text: text != ""}),
    # Terms
    ("terms", ask(q="dalan mira. Zo.", source="de", target="en", terms={"mira": "tolu tolu"}), 200,
     {"translatedText": lambda text: text.count("tolu tolu") >= 1}),
    ("terms of a form", post("/translate", form=[
        ("q", "dalan mira"), ("source", "de"), ("target", "en"),
        ("terms", '{"mira": "tolu tolu"}')]), 200,
     {"translatedText": lambda text: "tolu tolu" in text}),
    ("terms that no text holds", ask(q="zo", source="de", target="en", terms={"mira": "tolu"}), 200,
     {"translatedText": ZO}),
    ("a term that cannot be spelled", ask(q=["zo", "mira"], source="de", target="en",
                                          terms={"mira": "\U0001F600"}, notes=True), 200,
     {"translatedText": lambda texts: texts[0] != "", "notes": lambda notes: notes[0] == []
      and "is left out" in notes[1][-1]}),
    ("terms that are no texts", ask(q="zo", source="de", target="en", terms={"mira": 1}), 400,
     error("mira", "text", "1")),
    ("terms that are none", ask(q="zo", source="de", target="en", terms=["mira"]), 400,
     error("terms", "object")),
    ("terms of a form that are no JSON", post("/translate", form=[
        ("q", "zo"), ("source", "de"), ("target", "en"), ("terms", "mira=tolu")]), 400,
     error("JSON")),
    ("a term with two translations", ask(q="zo", source="de", target="en",
                                         terms={"ss": "b", "ß": "c"}), 400, error("'b'", "'c'")),
    ("too many terms", ask(q="zo", source="de", target="en",
                           terms={f"a{i}": "b" for i in range(101)}), 400, error("100")),
    ("notes that are none", ask(q="zo", source="de", target="en", notes=1), 400, error("notes", "1")),

    ("no alternatives", ask(q="zo", source="de", target="en", alternatives=0), 200,
     {"translatedText": ZO}),
    ("alternatives that are none", ask(q="zo", source="de", target="en", alternatives="x"), 400,
     error("alternatives", "x")),
    ("alternatives below 0", ask(q="zo", source="de", target="en", alternatives=-1), 400,
     error("alternatives", "-1")),
    ("too many alternatives", ask(q="zo", source="de", target="en", alternatives=11), 400,
     error("alternatives", "11")),
    # HTML
    ("HTML", ask(q="<p>dalan <b>mira</b></p>", source="de", target="en", format="html"), 200,
     {"translatedText": tagged("<p>", "<b>", "</b>", "</p>")}),
    ("HTML without text", ask(q="<hr><img src='a.png'>", source="de", target="en", format="html"),
     200, {"translatedText": "<hr><img src='a.png'>"}),
    ("translate=no", ask(q='<p translate="no">dalan</p>', source="de", target="en", format="html"),
     200, {"translatedText": '<p translate="no">dalan</p>'}),
    ("HTML is not read in text", ask(q="<b>", source="de", target="en", format="text"), 200,
     {"translatedText": T("de-en", "<b>")}),
    ("another format", ask(q="zo", source="de", target="en", format="pdf"), 400,
     error("format", "pdf")),
    ("HTML nested too deep", ask(q="<b>" * 600 + "zo", source="de", target="en", format="html"),
     400, error("512")),
    # Clients that many have
    ("Mastodon", ask(q=["<p>dalan mira</p>", "zo"], source="auto", target="en", format="html",
                     api_key=""), 200,
     {"detectedLanguage": lambda found: len(found) == 2,
      "translatedText": lambda texts: tagged("<p>", "</p>")(texts[0]) and len(texts) == 2}),
    ("Weblate", post("/translate", form=[("q", "zo"), ("source", "de"), ("target", "en"),
                                         ("api_key", "")]), 200, {"translatedText": ZO}),
    ("wagtail-localize", ask(q=["<a id=\"a1\">zo</a> dalan"], source="de", target="en",
                             format="html", api_key=None), 200,
     {"translatedText": lambda texts: tagged('<a id="a1">', "</a>")(texts[0])}),
    # Requests that make no sense
    ("missing q", ask(source="de", target="en"), 400, error("missing", "q")),
    ("q is null", ask(q=None, source="de", target="en"), 400, error("missing", "q")),
    ("missing source", ask(q="zo", target="en"), 400, error("missing", "source")),
    ("missing target", ask(q="zo", source="de"), 400, error("missing", "target")),
    ("q is missed first", ask(), 400, error("missing", "q")),
    ("unknown source", ask(q="zo", source="zz", target="en"), 400, error("zz", "not supported")),
    ("unknown target", ask(q="zo", source="de", target="zz"), 400, error("zz", "not supported")),
    ("no such pair", ask(q="zo", source="pt-BR", target="de"), 400, error("de", "not available")),
    ("an item that is no text", ask(q=["zo", 5], source="de", target="en"), 400, error("q")),
    ("an item that is null", ask(q=["zo", None], source="de", target="en"), 400, error("q")),
    ("q is an object", ask(q={"a": "zo"}, source="de", target="en"), 400, error("q")),
    ("source is a list", ask(q="zo", source=["de"], target="en"), 400, error("source")),
    ("too many texts", ask(q=["zo"] * 9, source="de", target="en"), 400, error("8", "9")),
    ("too many characters", ask(q="ö" * 2001, source="de", target="en"), 400,
     error("2000", "2001")),
    ("JSON that is none", post("/translate", body=b'{"q": ', type="application/json"), 400,
     error("JSON")),
    ("JSON that is a list", post("/translate", json=["zo"]), 400, error("object")),
    ("JSON nested too deep", post("/translate", body=b"[" * 100_000, type="application/json"), 400,
     error("JSON")),
    ("a key twice", post("/translate", body=b'{"q": "a", "q": "b", "source": "de", "target": "en"}',
                         type="application/json"), 400, error("q")),
    ("bytes that are no UTF-8", post("/translate", body=b'{"q": "\xff"}', type="application/json"),
     400, error("JSON")),
    ("a form that is no UTF-8", post("/translate", body=b"q=%ff&source=de&target=en",
                                     type="application/x-www-form-urlencoded"), 400, error("UTF-8")),
    ("half a character in JSON", post("/translate", type="application/json",
                                      body=b'{"q": "\\ud800", "source": "de", "target": "en"}'),
     400, error("JSON")),
    ("another type", post("/translate", body=b"zo", type="text/plain"), 415, error("text/plain")),
    # Other things
    ("languages", Request("GET", "/languages"), 200, [
        {"code": "de", "name": "German", "targets": ["en", "fr"]},
        {"code": "en", "name": "English", "targets": ["de", "fr"]},
        {"code": "pt-BR", "name": "Portuguese (Brazil)", "targets": ["en"]},
        {"code": "zh-Hans", "name": "Chinese", "targets": ["en"]},
        {"code": "fr", "name": "French", "targets": []}]),
    ("health", Request("GET", "/health"), 200, {"status": "ok"}),
    ("settings", Request("GET", "/frontend/settings"), 200, {
        "apiKeys": False, "charLimit": 2000, "detectsLanguages": True, "filesTranslation": False,
        "frontendTimeout": 500, "keyRequired": False, "suggestions": False, "supportedFilesFormat": [],
        "languageModels": ["book"], "maxAlternatives": 10, "maxLength": 1000,
        "language": {"source": {"code": "auto", "name": "Auto Detect"},
                     "target": {"code": "en", "name": "English"}}}),
    ("a trailing slash", Request("GET", "/health/"), 200, {"status": "ok"}),
    ("wrong method", Request("GET", "/translate"), 405, error("Method")),
    ("wrong method for languages", post("/languages"), 405, error("Method")),
    ("suggestions", post("/suggest", json={"q": "a", "s": "b", "source": "de", "target": "en"}),
     403, error("suggestions")),
    ("files", post("/translate_file", body=b"x", type="multipart/form-data; boundary=x"), 403,
     error("files")),
    ("nothing there", Request("GET", "/nothing"), 404, error("Not found")),
    ("a file of the machine", Request("GET", "/../../etc/passwd"), 404, error("Not found")),
    ("another host", Request("GET", "/health", headers={"Host": "evil.example:5000"}), 403,
     error("evil.example")),
    ("an address as host", Request("GET", "/health", headers={"Host": "192.168.1.7:5000"}), 200,
     {"status": "ok"}),
    ("an allowed host", Request("GET", "/health", headers={"Host": "Translate.Example"}), 200,
     {"status": "ok"}),
    # Language models
    ("generate", post("/generate", json={"prompt": "1", "length": 4, "seed": 3}), 200,
     lambda answer: answer["tokens"] == 4 and answer["text"] != ""),
    ("generate by a whole number with a point", post("/generate", json={
        "prompt": "1", "length": 2.0, "seed": 3, "top_k": 7408483415884598.0}), 200,
     {"text": lambda text: True, "tokens": 2}),
    ("generate by a number that is not whole", post("/generate", json={
        "prompt": "1", "top_k": 2.5}), 400, error("top_k", "2.5")),
    ("generate without a prompt", post("/generate", json={}), 400, error("missing", "prompt")),
    ("generate too much", post("/generate", json={"prompt": "1", "length": 1001}), 400,
     error("length", "1000")),
    ("generate by no such model", post("/generate", json={"prompt": "1", "model": "x"}), 400,
     error("x")),
    ("temperature that is none", post("/generate", json={"prompt": "1", "temperature": "hot"}),
     400, error("temperature", "hot")),
]  # fmt: skip
