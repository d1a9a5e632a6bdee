"""What the pages of scripts/validate-gpu are made of: the lines by part, figures as text, tables and sections."""
MIB = 2**20
MATH = {False: "fp32", True: "TF32"}


class Rows:
    """The lines, by part; those that failed apart."""

    def __init__(self, rows):
        self.all = list(rows.values())

    def of(self, part, **wanted):
        return [row for row in self.all if row["part"] == part and "failed" not in row and all(row.get(k) == v for k, v in wanted.items())]

    def failed(self):
        return [row for row in self.all if "failed" in row]

    def results(self, *parts):
        """(row, result) of all strategies that `snsim validate` trained to the end."""
        return [(row, result) for part in parts for row in self.of(part) for result in row["results"] if "measured_iteration_ns" in result]


def error(predicted, measured):
    return predicted / measured - 1


def percent(share, digits=1):
    return f"{100 * share:+.{digits}f} %"


def mib(count):
    return f"{count / MIB:,.1f}"


def title(row):
    words = [str(row[key]) for key in ("net", "batch") if key in row]
    if "tf32" in row:
        words.append(MATH[row["tf32"]])
    return ", ".join(words)


def table(head, lines):
    if not lines:
        return ""
    rule = "|---|" + "---:|" * (len(head) - 1)
    return "\n".join(["| " + " | ".join(head) + " |", rule] + ["| " + " | ".join(map(str, line)) + " |" for line in lines]) + "\n"


def section(name, *bodies):
    body = "\n".join(body for body in bodies if body)
    return f"\n## {name}\n\n{body}" if body else ""


def verdict(found, met):
    return ("met" if met else "**not met**") + f": {found}"
