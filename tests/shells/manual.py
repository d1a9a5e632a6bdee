"""The manual page is good roff, and says all that the tables say: groff has nothing to warn of, and every command and
option stands in the page as it is shown.

    manual.py        SNSIM_BINARY names the program; exit 77: there is no groff"""
import os
import re
import shutil
import subprocess
import sys

BINARY = os.environ["SNSIM_BINARY"]


def output(command, text=None):
    done = subprocess.run(command, input=text, check=True, text=True, timeout=60, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8", "GROFF_NO_SGR": "1"})
    return done.stdout, done.stderr


def main():
    if not shutil.which("groff"):
        print("no groff")
        sys.exit(77)
    page = output([BINARY, "help", "--man"])[0]
    wrong = output(["groff", "-man", "-ww", "-Tutf8", "-z"], page)[1].splitlines()
    shown = re.sub(".\b", "", output(["groff", "-man", "-Tutf8"], page)[0])  # bold is a letter struck twice
    words = set(re.findall(r"[\w-]+", shown.replace("\u2212", "-")))
    overview = output([BINARY, "help"])[0]
    commands = re.findall(r"^  (\w+) ", overview.split("\nCommands\n")[1].split("\n\n")[0], re.M)
    if len(commands) < 9:
        wrong.append(f"only {commands} in snsim help")
    for command in commands:
        options = re.findall(r"^ .* (--[\w-]+)", output([BINARY, "help", command])[0], re.M)
        wrong += [f"no {word} in the manual page" for word in [command, *options] if word not in words]
    if shutil.which("man"):
        with open("snsim_test.1", "w") as file:
            file.write(page)
        wrong += output(["man", "-l", "--warnings", "-E", "UTF-8", "./snsim_test.1"])[1].splitlines()
        os.unlink("snsim_test.1")
    print("\n".join(wrong) or "the manual page is sound")
    sys.exit(1 if wrong else 0)


main()
