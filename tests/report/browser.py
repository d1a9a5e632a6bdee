"""A headless Chromium, driven through its DevTools protocol over a pipe (--remote-debugging-pipe): one JSON message after
another, each ended by a zero byte. Python's standard library only.

    with Browser(find()) as page:
        page.open("report.html", width=1280, height=900)
        page.evaluate("document.title")
        page.faults        # what the page complained about
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE_S = 60


def find():
    """The path of a Chromium, or None. $SNSIM_CHROMIUM names one that is elsewhere."""
    return os.environ.get("SNSIM_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        from_us, self.writes = os.pipe()
        self.reads, to_us = os.pipe()
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
                   "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "about:blank"]
        # the protocol is on descriptors 3 and 4
        shell = ["sh", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "sh", *command]
        self.process = subprocess.Popen(shell, pass_fds=(from_us, to_us), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self.buffer, self.number, self.session = b"", 0, None
        self.events, self.faults, self.requests = [], [], []

    def __enter__(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        os.close(self.writes)
        os.close(self.reads)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    # messages

    def receive(self, until):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reads], [], [], max(0, until - time.monotonic()))
            piece = os.read(self.reads, 1 << 20) if ready else b""
            if not piece:
                raise RuntimeError("the browser " + ("ended" if ready else "does not answer"))
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, values = message.get("method", ""), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.faults.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.faults.append(str(values["args"]))
        elif method == "Log.entryAdded":
            self.faults.append(values["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        self.events.append(method)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = self.receive(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def wait_for(self, event):
        until = time.monotonic() + PATIENCE_S
        while event not in self.events:
            self.note(self.receive(until))

    # the page

    def size(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)

    def dark(self, is_dark):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])

    def open(self, path, width, height):
        self.size(width, height)
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression):
        """The value of an expression, or of the promise it gives, in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def box(self, selector):
        """Left, top, width and height of an element, scrolled into sight."""
        text = json.dumps(selector)
        return self.evaluate(f"""(() => {{ const e = document.querySelector({text});
            e.scrollIntoView({{block: "center", behavior: "instant"}});
            const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; }})()""")

    def point(self, x, y, kind="mouseMoved", button="none"):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=int(kind != "mouseMoved"))

    def click(self, selector):
        left, top, width, height = self.box(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.point(left + width / 2, top + height / 2, kind, "left")
        self.frame()

    def hover(self, selector, across, down):
        """Points at a place of an element, given as shares of its width and height."""
        left, top, width, height = self.box(selector)
        self.point(left + across * width, top + down * height)
        self.frame()

    def tap(self, selector, across, down):
        left, top, width, height = self.box(selector)
        place = [{"x": left + across * width, "y": top + down * height}]
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=place)
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.frame()

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)
        self.frame()

    def press_enter(self):
        self.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r", windowsVirtualKeyCode=13)
        self.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", windowsVirtualKeyCode=13)
        self.frame()

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def picture(self, path, whole=True):
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(answer["data"]))
