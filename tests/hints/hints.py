#!/usr/bin/env python3
"""Every hint that an error gives is accepted when typed.

Each line of mistakes.txt is a command line with what is wrong in [brackets]. It must fail as wrong usage and give a hint;
each of its hints is typed in place of the brackets, or as it stands where it is a command of its own, and must not be
wrong usage again. What messages beyond these name, "--option" and "snsim command" in the sources, must exist.

    tests/hints/hints.py [TEXT]      only lines with TEXT; SNSIM_BINARY: the program
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from cases import case_count  # noqa: E402

BINARY = os.path.realpath(os.environ.get("SNSIM_BINARY", "build/snsim"))
HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LAYERS = ["base", "models", "sim", "exec", "db", "plots", "cli"]
WRONG_USAGE = 2


def ask(words, folder):
    env = dict(os.environ, HOME=folder, XDG_DATA_HOME=folder, NO_COLOR="1")
    done = subprocess.run([BINARY, *words], capture_output=True, text=True, check=False, env=env, cwd=folder)
    return done.returncode, done.stderr, done.stdout


class Known:
    """Commands, and the options of each, as help tells them."""

    def __init__(self, folder):
        overview = ask(["help"], folder)[2]
        self.commands = re.findall(r"^ {2,4}([a-z][a-z-]+) {2,}", overview, re.M)
        self.options = {c: set(re.findall(r"--([a-z][a-z0-9-]+)", ask(["help", c], folder)[2])) for c in self.commands}
        self.all = set().union(*self.options.values())

    def command(self, words):
        return next((w for w in words[:1] if w in self.commands), "simulate")


def replaced(line, text):
    """The command line with `text` in place of what is in brackets."""
    words = shlex.split(re.sub(r"\[.*\]", lambda _: text, line))
    return words


def moved(line, hint, known):
    """The same for another command: its own words stand first, and the rest of the line behind them."""
    rest = replaced(line, "")
    if rest and rest[0] in known.commands:
        rest = rest[1:]
    return shlex.split(hint) + rest


def commands_of(message):
    """What stands in a message as a command of its own, "snsim list gpus shows them": without what says of it."""
    for text in re.findall(r"snsim ((?:--)?[a-z][^;,()?'\n]*)", re.sub(r"\(did you mean [^?]*\?\)", "", message)):
        text = re.split(r"(?<=\S) (?:tells|lists|shows|measures|does|which|what|says|for)\b", text)[0]
        if not re.search(r"[A-Z]", text):
            yield shlex.split(text)


def hints_of(line, message, known):
    """(what is typed, the words of it), one a hint."""
    for meant in re.findall(r"\(did you mean ([^?]*)\?", message):
        if meant.startswith("snsim "):
            yield meant, moved(line, meant[6:], known)
        else:
            yield meant, replaced(line, meant.strip('"'))
    if "leave it out" in message:
        yield "leave it out", replaced(line, "")
    for given in re.findall(r"(?:given as|and give|adapters:|PyTorch is) (--\S+ [^\s;]+|pytorch)", message):
        yield given, replaced(line, given)
    for size in re.findall(r"\b\d+(?:[KMGT]i?B)\b", message if "unit" in message or "leaves open" in message else ""):
        yield size, replaced(line, size)
    for words in commands_of(message):
        yield "snsim " + " ".join(words), words


def accepted(typed, folder):
    """None, or why it is wrong usage. A command that only lacks what to ask about names an example, which then counts."""
    status, said, _ = ask(typed, folder)
    example = re.search(r"(?:missing; for instance|needs one of)[: ]*(?:snsim )?(\S[^;|\n]*)", said)
    if status == WRONG_USAGE and example:
        words = shlex.split(example[1])
        status, said, _ = ask(typed + words if "needs one of" in said else words, folder)
    return said if status == WRONG_USAGE else None


def check(line, known, folder):
    """What is wrong with the hints of a mistake."""
    words = shlex.split(line.replace("[", "").replace("]", ""))
    status, message, _ = ask(words, folder)
    if status != WRONG_USAGE:
        return [f"{line}: exit status {status}, not {WRONG_USAGE}: {message}"]
    hints = list(hints_of(line, message, known))
    wrong = [] if hints else [f"{line}: no hint in: {message}"]
    for hint, typed in hints:
        said = accepted(typed, folder)
        if said:
            wrong.append(f"{line}\n    said {message}    hint \"{hint}\", typed as snsim {' '.join(typed)}, gives {said}")
    return wrong


def literals(text):
    """The string literals of C, adjacent ones joined."""
    for run in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
        yield "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', run))


def sources():
    for layer in LAYERS:
        for folder, _, files in os.walk(os.path.join(ROOT, layer)):
            for name in sorted(files):
                if name.endswith(".c"):
                    yield os.path.join(folder, name)


# What follows the program's name where a text speaks of it, and options of other programs.
PROSE = {"does", "has", "reads", "with", "never", "database", "knows", "brings", "answers", "cannot", "without", "and"}
OTHERS = {"keep", "description", "autocast", "sm"}


def unknown_names(known):
    """Of all sources: commands that their texts name and that do not exist, and options that no command has, or not the
    one before them."""
    for path in sources():
        with open(path, encoding="utf-8") as file:
            for text in literals(file.read()):
                for command in re.findall(r"\bsnsim ([a-z][a-z-]+)\b", text):
                    if command not in known.commands and command not in PROSE:
                        yield path, f"snsim {command}", text
                for option in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", text):
                    if option not in known.all and option not in OTHERS:
                        yield path, f"--{option}", text
                for command, rest in re.findall(r"\bsnsim ([a-z][a-z-]+)((?: [^\s;,()|]+)*)", text):
                    for option in re.findall(r"(?<= )--([a-z][a-z0-9-]+)", rest):
                        if command in known.options and option not in known.options[command] | OTHERS:
                            yield path, f"snsim {command} --{option}", text


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    wrong, tried = [], 0
    with tempfile.TemporaryDirectory() as folder:
        known = Known(folder)
        assert "simulate" in known.commands and len(known.commands) > 20, known.commands
        with open(os.path.join(HERE, "mistakes.txt"), encoding="utf-8") as file:
            lines = [line.strip() for line in file if line.strip() and not line.startswith("#") and only in line]
        stride = 1 if only else max(1, len(lines) // case_count(len(lines)))
        for line in lines[::stride]:
            wrong += check(line, known, folder)
            tried += 1
        wrong += [f"{os.path.relpath(path, ROOT)}: {name} does not exist, in \"{text[:100]}\""
                  for path, name, text in unknown_names(known)]
    print("\n".join(wrong) if wrong else f"{tried} mistakes: every hint is accepted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
