"""Completions really complete: each shell reads the script that the program prints and is asked what it makes of the
beginning of a command line.

    completions.py bash|zsh|fish        SNSIM_BINARY names the program; exit 77: there is no such shell

bash: the function is called as the shell would call it. fish: its own `complete -C`. zsh, which completes only in its
line editor: an interactive shell in a pseudo-terminal, so that there only what is unambiguous can be asked."""
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

BINARY = os.path.abspath(os.environ["SNSIM_BINARY"])

# A line, what it is completed to (the last word whole), where that is one thing.
UNIQUE = [
    ("snsim plo", "plot"),
    ("snsim --net alexn", "alexnet"),
    ("snsim --net=alexn", "--net=alexnet"),
    ("snsim simulate --gpu a100_8", "a100_80"),
    ("snsim --strategy liveness+cache+recompute=c", "liveness+cache+recompute=cost"),
    ("snsim --strategy=liveness+cache+recompute=c", "--strategy=liveness+cache+recompute=cost"),
    ("snsim --workspace dy", "dynamic"),
    ("snsim plot --color ne", "never"),
    ("snsim list gp", "gpus"),
    ("snsim completions fi", "fish"),
    ("snsim help expo", "export"),
    ("snsim show la", "last"),
    ("snsim show 1", "1"),
    ("snsim diff 1 la", "last"),
    ("snsim export --tab", "--table"),
    ("snsim export --table ten", "tensors"),
    ("snsim --json --batch 3 memc", "memcost"),
    ("snsim export -o a_fi", "a_file.csv"),
    ("snsim show --db a_fi", "a_file.csv"),
    ("snsim --net a_fo", "a_folder/"),
    ("snsim run --iter", "--iterations"),
    ("snsim fit --max de", "depth"),
    ("snsim fit --which g", "gpu"),
    ("snsim --gpu a_pro", "a_profile.json"),
    ("snsim --strategy baseline,liveness+cache+recompute=c", "baseline,liveness+cache+recompute=cost"),
    ("snsim sweep --nets alexnet,lene", "alexnet,lenet"),
    ("snsim sweep --gpus k40c,v100_3", "k40c,v100_32"),
    ("snsim sweep --workspaces none,dy", "none,dynamic"),
    ("snsim show sweep:la", "sweep:last"),
    ("snsim plot sweep:1", "sweep:1"),
    ("snsim show cal", "calibrations"),
]

# A line, words that must be offered, words that must not.
OFFERED = [
    ("snsim ", {"simulate", "list", "show", "plot", "help"}, {"alexnet", "--net"}),
    ("snsim --net resnet1", {"resnet18", "resnet101", "resnet152"}, {"resnet50", "resnet"}),
    ("snsim show --", {"--steps", "--json", "--db"}, {"--batch", "--table"}),
    ("snsim --", {"--net", "--strategy", "--no-db"}, {"--table", "--check"}),
    ("snsim export --table ", {"results", "steps", "peaks", "tensors"}, {"a_file.csv", "last"}),
    ("snsim list ", {"nets", "gpus", "clusters", "strategies"}, {"a_file.csv"}),
    ("snsim --gpu ", {"k40c", "a_profile.json"}, {"a_page.html", "a_file.csv"}),
    ("snsim --gpu a_", {"a_profile.json", "a_folder/"}, {"a_page.html", "a_file.csv"}),
    ("snsim sweep --nets alexnet,", {"alexnet,lenet", "alexnet,vgg16"}, {"lenet", "alexnet,a_page.html"}),
    ("snsim show ", {"1", "last", "sweep:1", "sweep:last", "sweeps", "calibrations"}, set()),
    ("snsim --batch ", set(), {"alexnet", "a_file.csv", "last"}),
    ("snsim --strategy liveness+off", {"liveness+offload", "liveness+offload+recompute=cost"}, {"liveness"}),
]


def environment(folder):
    path = os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"]
    keep = {k: v for k, v in os.environ.items() if k not in ("XDG_DATA_HOME", "BASH_ENV", "ENV", "ZDOTDIR")}
    return {**keep, "PATH": path, "HOME": folder, "LC_ALL": "C.UTF-8", "TERM": "dumb", "XDG_CONFIG_HOME": folder,
            "PS1": "PROMPT "}


def prepare(folder, shell):
    os.mkdir(os.path.join(folder, "bin"))
    os.symlink(BINARY, os.path.join(folder, "bin", "snsim"))
    os.mkdir(os.path.join(folder, "a_folder"))
    for name in ("a_file.csv", "a_profile.json", "a_page.html"):
        open(os.path.join(folder, name), "w").close()
    run(folder, ["snsim", "--net", "lenet", "--batch", "2", "--strategy", "liveness"])
    run(folder, ["snsim", "sweep", "--nets", "lenet", "--batches", "2", "--strategy", "liveness"])
    run(folder, ["snsim", "completions", shell, "-o", "script"])
    os.mkdir(os.path.join(folder, "functions"))
    os.symlink("../script", os.path.join(folder, "functions", "_snsim"))


def run(folder, command):
    return subprocess.run(command, cwd=folder, env=environment(folder), check=True, text=True, timeout=60,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE).stdout


# ---- bash ----

def ask_bash(folder, line):
    """The last word as each reply would leave it: bash keeps what stands before its last word break."""
    words = line.split() + ([""] if line.endswith(" ") else [])
    script = ("source ./script; COMP_WORDS=(%s); COMP_CWORD=%d; COMP_LINE=$1; COMP_POINT=${#1}\n"
              "$(complete -p snsim | sed -E 's/.*-F ([^ ]+) .*/\\1/') snsim; printf '%%s\\n' \"${COMPREPLY[@]}\""
              % (" ".join("'%s'" % w for w in words), len(words) - 1))
    replies = run(folder, ["bash", "--norc", "-c", script, "bash", line]).split("\n")
    kept = words[-1][:max(words[-1].rfind(c) for c in "=:") + 1]
    return {kept + r + ("/" if os.path.isdir(os.path.join(folder, r)) and r else "") for r in replies if r}


# ---- fish ----

def ask_fish(folder, line):
    command = "source ./script; complete -C \"$argv[1]\""
    replies = run(folder, ["fish", "--no-config", "-c", command, line]).split("\n")
    return {r.split("\t")[0] for r in replies if r}


# ---- zsh ----

class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, folder, command):
        self.text = ""  # read and not yet looked at
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment(folder))

    def read_until(self, mark, seconds=30):
        end = time.monotonic() + seconds
        while mark not in self.text and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        if mark not in self.text:
            sys.exit(f"the shell did not answer: {self.text!r}")
        self.text = self.text.split(mark, 1)[1]

    def say(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


# The line as it is after completion goes to a file; nothing is read back from the drawing on the screen.
ZSH_SETUP = """PS1='' PROMPT_EOL_MARK=''
autoload -U compinit
%s
setopt no_beep no_list_beep
show-line() { print -r -- $LBUFFER >>lines; LBUFFER=''; print READY }
zle -N show-line
bindkey '^Xq' show-line
print STARTED
"""


# The script is found by compinit in a folder of $fpath, as where it is installed, or read after compinit.
ZSH_WAYS = ["fpath=($PWD/functions $fpath); compinit -u -D", "compinit -u -D; source ./script"]


def open_zsh(folder, way):
    with open(os.path.join(folder, "setup"), "w") as setup:
        setup.write(ZSH_SETUP % way)
    zsh = Terminal(folder, ["zsh", "-f", "-i"])
    zsh.read_until("\x1b[?2004h")  # the line editor is there; what is said earlier is thrown away
    zsh.say("source ./setup\r")
    zsh.read_until("STARTED")
    zsh.read_until("\x1b[?2004h")
    return zsh


def ask_zsh(zsh, folder, line):
    path = os.path.join(folder, "lines")
    if os.path.exists(path):
        os.unlink(path)
    zsh.say(line + "\t\x18q")
    zsh.read_until("READY")
    with open(path) as lines:
        return lines.read().split()[-1].rstrip("=")  # zsh goes on to the option's value


def check_zsh(folder, way):
    zsh = open_zsh(folder, way)
    got = [(line, want, ask_zsh(zsh, folder, line)) for line, want in UNIQUE]
    zsh.close()
    return [f"{line!r}: {found!r}, not {want!r}" for line, want, found in got if found != want]


# ---- all ----

def check(folder, ask):
    wrong = []
    for line, want in UNIQUE:
        got = ask(folder, line)
        if got != {want}:
            wrong.append(f"{line!r}: {got!r}, not {want!r}")
    for line, want, never in OFFERED:
        got = ask(folder, line)
        if not want <= got or got & never:
            wrong.append(f"{line!r}: {sorted(got)}, without {sorted(want - got)}, with {sorted(got & never)}")
    return wrong


def main():
    shell = sys.argv[1]
    if not shutil.which(shell):
        print(f"no {shell}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder, shell)
        run(folder, [shell, "-n", "script"])
        if shell == "zsh":
            wrong = sum((check_zsh(folder, way) for way in ZSH_WAYS), [])
        else:
            wrong = check(folder, {"bash": ask_bash, "fish": ask_fish}[shell])
    print("\n".join(wrong) or f"{shell}: all lines completed as they should be")
    sys.exit(1 if wrong else 0)


main()
