"""The notebook docs/record.ipynb: its cells run in order, what a cell ends with can be shown, and nothing that it printed is kept in
it. Skipped without PyTorch."""
import ast
import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
import unittest

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCES, "python"))
os.environ["SNSIM_PROGRAM"] = os.environ.get("SNSIM_BINARY") or os.path.join(SOURCES, "build", "snsim")


def shown(source, names):
    """Runs a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


class Notebook(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(SOURCES, "docs", "record.ipynb"), encoding="utf-8") as file:
            self.notebook = json.load(file)
        self.cells = [cell for cell in self.notebook["cells"] if cell["cell_type"] == "code"]

    def test_it_is_kept_without_outputs(self):
        self.assertEqual((self.notebook["nbformat"], [cell["outputs"] for cell in self.cells]), (4, [[] for _ in self.cells]))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
    def test_the_cells_run(self):
        names, values, here = {"__name__": "__main__"}, [], os.getcwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            os.chdir(folder)
            try:
                values = [shown("".join(cell["source"]), names) for cell in self.cells]
            finally:
                os.chdir(here)
        pages = [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]
        self.assertEqual(len(pages), 2)
        self.assertIn("<svg", pages[0])
        self.assertIn("for any batch", out.getvalue())
        self.assertIn("Largest batch", out.getvalue())
        largest = next(value for value in values if isinstance(value, dict))
        self.assertLess(0, largest["t4"])
        self.assertLess(largest["t4"], largest["rtx4090"])
        self.assertLess(largest["rtx4090"], largest["h100"])
        self.assertTrue(values[-1].agrees)


if __name__ == "__main__":
    unittest.main()
