"""How many cases a test in Python tries, as tests/support/seed.h has it: a tenth unless SN_PROP_PERCENT says otherwise, and
from 25 % on all of them."""
import os


def case_count(own):
    """Of `own` cases, at least one."""
    percent = int(os.environ.get("SN_PROP_PERCENT", "10"))
    return own if percent >= 25 else max(1, own * percent // 100)
