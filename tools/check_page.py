#!/usr/bin/env python3
"""Looks for barriers in the page of `seqconv serve`, by axe in Debian's chromium.

    .venv/bin/python tools/check_page.py [--pictures DIR] [--model DIR]

Every view is looked at empty and in use, light and dark, as wide as a screen and as a small
phone (320 px). Prints each violation of axe's rules, also those of best practice, and exits with
1 if there is one. --pictures writes what the browser shows; --model is that of a pair de-en in
place of the tests' one. Needs a build (SEQCONV_BINARY_DIR, build/release) and the package
axe-playwright-python.
"""
import argparse
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, os.fspath(ROOT / "tests" / "cli"))
from serve_support import FOLDERS, Server

from axe_playwright_python.sync_playwright import Axe  # noqa: E402, isort: skip
from playwright.sync_api import sync_playwright  # noqa: E402, isort: skip

TEXT = "dalan pelim mira. zo so tolu!"


def translate(page, text):
    page.fill("#q", text)
    page.wait_for_selector("#translation[aria-busy=false] .word")
    page.click("#pairs summary")
    page.focus("#translation")
    page.keyboard.press("ArrowRight")


def translate_html(page, text):
    page.check("[name=format][value=html]")
    page.fill("#q", f"<p>{text}</p><ul><li>{text}</ul>")
    page.wait_for_selector("#rendered:visible")


def inspect(page, text):
    page.fill("#sentence", text)
    page.click("#inspect-form button")
    page.wait_for_selector("#layers svg")
    for summary in page.query_selector_all("#layers summary")[:3]:
        summary.click()


def write(page, text):
    page.fill("#prompt", text)
    page.fill("#length", "40")
    page.click("#begin")
    page.wait_for_selector("#write-status:has-text('Done')")


def fail(page, text):
    page.route("**/translate/stream", lambda route: route.abort())
    page.fill("#q", text)
    page.wait_for_selector("#error:has-text('reached')")


def ask_key(page, text):
    page.evaluate("for (const id of ['key-form', 'ask-key'])"
                  " document.getElementById(id).hidden = false")


SCENES = {
    "empty": ("translate", lambda page, text: None),
    "translate": ("translate", translate),
    "html": ("translate", translate_html),
    "fault": ("translate", fail),
    "key": ("translate", ask_key),
    "inspect": ("inspect", inspect),
    "write": ("write", write),
}


def look(browser, url, scene, width, colours, options):
    """The violations of a scene, and a picture of it."""
    view, act = SCENES[scene]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=colours)
    page = context.new_page()
    page.goto(f"{url}/#{view}?source=de&target=en")
    page.wait_for_selector("nav [aria-current]")
    act(page, options.text)
    if options.pictures:
        page.screenshot(path=options.pictures / f"{scene}-{width}-{colours}.png", full_page=True)
    found = Axe().run(page).response
    context.close()
    assert len(found["passes"]) > 10, "axe has not looked"
    return found["violations"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--model", default=FOLDERS / "translation_1")
    parser.add_argument("--text", default=TEXT)
    options = parser.parse_args()
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    count = 0
    arguments = ["--model", f"de-en={options.model}", "--language-model",
                 f"tales={FOLDERS / 'language_1'}"]
    with Server(*arguments) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox"])
        for scene in SCENES:
            for width in 1200, 320:
                for colours in "light", "dark":
                    for one in look(browser, server.url, scene, width, colours, options):
                        count += 1
                        print(f"{scene}, {width} px, {colours}: {one['id']}: {one['help']}")
                        for node in one["nodes"]:
                            print(f"    {node['html'][:160]}\n      {node['failureSummary']}")
        browser.close()
    print(f"{count} violations in {4 * len(SCENES)} pages")
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
