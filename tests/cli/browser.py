"""Headless Chromium, driven over a pipe by the DevTools protocol.

Needs Debian's chromium (tools/setup.sh --python-tests), or CHROMIUM.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
import zlib

SKIPPED = 77
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
SECONDS = int(os.environ.get("BROWSER_SECONDS", 60))  # that anything may take
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37,
        "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Browser:
    """A browser with a profile of its own; close() ends it."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="seqconv-chromium-")
        theirs, self.ours = os.pipe()
        self.answers, their_answers = os.pipe()
        command = [
            CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs} 4>&{their_answers}', "bash", *command],
            pass_fds=(theirs, their_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(their_answers)
        self.rest, self.number, self.events = b"", 0, []

    def close(self):
        with contextlib.suppress(OSError, AssertionError):
            self.call("Browser.close")
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        os.close(self.ours)
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self, seconds):
        """The next message, None when none comes in time."""
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.answers], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            part = os.read(self.answers, 1 << 16)
            if not part:
                raise OSError("the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def hear(self, seconds=0.0):
        """Keeps the events that came, waiting so long for the first."""
        while (message := self.read(seconds)) is not None:
            self.events.append(message)
            seconds = 0

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.ours, json.dumps(message).encode() + b"\0")
        while (answer := self.read(SECONDS)) is not None:
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)
        raise AssertionError(f"{method} was not answered")

    def tab(self):
        return Tab(self)


class Tab:
    """A page, with storage of its own, as a person sees it."""

    def __init__(self, browser):
        self.browser = browser
        context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)
        self.session = browser.call("Target.attachToTarget", targetId=target["targetId"],
                                    flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def events(self, method):
        self.browser.hear()
        return [event["params"] for event in self.browser.events
                if event.get("sessionId") == self.session and event.get("method") == method]

    def complaints(self):
        """Errors and warnings of the console, and exceptions."""
        return [
            *(event["exceptionDetails"] for event in self.events("Runtime.exceptionThrown")),
            *(event for event in self.events("Runtime.consoleAPICalled")
              if event["type"] in ("error", "warning", "assert")),
            *(event["entry"] for event in self.events("Log.entryAdded")
              if event["entry"]["level"] in ("error", "warning"))]

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression):
        """Waits until an expression is true, and gives its value; true for an element."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if value := self.value(f"(v => v instanceof Node || v)({expression})"):
                return value
            self.browser.hear(0.05)
        raise AssertionError(f"never true: {expression}; the page says: "
                             f"{self.value('document.body.innerText')}")

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).textContent")

    def place(self, selector):
        box = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getClientRects()[0];"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        return {"x": box[0], "y": box[1]}

    def move(self, selector):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **self.place(selector))

    def click(self, selector):
        place = self.place(selector)
        for kind in "mousePressed", "mouseReleased":
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def type(self, selector, text):
        self.value(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, key):
        for kind in "rawKeyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=KEYS[key])

    def look(self, width, height=900, dark=False):
        """A window of this width, light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def colours(self, selector):
        """The number of different bytes in a picture of an element, filtered as PNG has it."""
        box = self.value(f"document.querySelector({json.dumps(selector)})"
                         ".getBoundingClientRect().toJSON()")
        clip = {name: box[name] for name in ("x", "y", "width", "height")} | {"scale": 1}
        png = base64.b64decode(self.call("Page.captureScreenshot", clip=clip)["data"])
        packed, place = b"", 8
        while place < len(png):
            size = int.from_bytes(png[place:place + 4], "big")
            if png[place + 4:place + 8] == b"IDAT":
                packed += png[place + 8:place + 8 + size]
            place += size + 12
        return len(set(zlib.decompress(packed)))
