"""Lint: files of at most 600 lines (tests and benchmarks as well); functions of at most 80 lines, and in the product a
median of at most 15. A function counts from the first line of its head to its closing brace. Relies on the layout of
clang-format: a body opens with ") {" at the end of an unindented head and closes with "}" in the first column."""
import re
import statistics

import lint

FILE_LINES, FUNCTION_LINES, MEDIAN_LINES = 600, 80, 15
HEAD = re.compile(r"[A-Za-z_][\w\s*]*\(")  # type and name up to the first bracket: no "=", so no initialiser


def functions(text_lines):
    """(line, length) of every function, both from its head."""
    head = body = None
    for number, line in enumerate(text_lines, 1):
        if body:
            if line == "}":
                yield body, number - body + 1
                body = None
            continue
        if HEAD.match(line):
            head = number
        if head and re.search(r"\)\s*\{\}?$", line):
            if line.endswith("{}"):
                yield head, number - head + 1
            else:
                body = head
            head = None
        elif line.endswith((";", "}")) or not line:
            head = None


def file_findings(root, path, text_lines):
    found = []
    if len(text_lines) > FILE_LINES:
        found.append(lint.finding(root, path, len(text_lines), f"{len(text_lines)} lines, at most {FILE_LINES}"))
    for line, length in functions(text_lines):
        if length > FUNCTION_LINES:
            found.append(lint.finding(root, path, line, f"function of {length} lines, at most {FUNCTION_LINES}"))
    return found


def check(root):
    found, product = [], []
    for path in lint.c_files(root, lint.LAYERS + ("tests", "bench")):
        text_lines = lint.lines(path)
        found += file_findings(root, path, text_lines)
        if path.relative_to(root).parts[0] in lint.LAYERS:
            product += [length for _, length in functions(text_lines)]
    if product:
        median = statistics.median(product)
        print(f"{len(product)} functions, median {median:g} lines, longest {max(product)}, "
              f"{sum(length > 45 for length in product)} over 45")
        if median > MEDIAN_LINES:
            found.append(f"median function length is {median:g} lines, at most {MEDIAN_LINES}")
    return found


def function(length, name="f"):
    """The text of a function of that many lines."""
    return f"static int {name}(int a,\n    int b) {{\n" + "  a++;\n" * (length - 3) + "}\n"


SHORT = "int x(void) {\n  return 0;\n}\n"
CASES = [
    ("clean", {"sim/a.c": function(15) + "\n" + function(80, "g") + SHORT + "void e(void) {}\n"}, None),
    ("long table", {"sim/a.c": "static const int t[] = {\n" + "  1,\n" * 200 + "};\n" + SHORT}, None),
    ("long list macro", {"sim/a.h": "#define L(X) \\\n" + "  X(1) \\\n" * 200 + "\n"}, None),
    ("long function", {"sim/a.c": "int y;\n\n" + function(81) + 3 * SHORT}, "sim/a.c:3: function of 81 lines"),
    ("long test", {"tests/base/a.c": function(90)}, "function of 90 lines"),
    ("long file", {"sim/a.c": "\n" * 601}, "601 lines"),
    ("long header", {"sim/a.h": "int a;\n" * 700}, "700 lines"),
    ("median", {"sim/a.c": function(16) + function(17) + SHORT}, "median function length is 16"),
]

lint.run(check, CASES)
