"""Modules stay short, the kernel stays small, and only the console and the command line print."""

from __future__ import annotations

import ast
import io
import tokenize

LONGEST_MODULE = 400
KERNEL_CODE_LINES = 2_500
KERNEL_LINES = 4_000
MAY_PRINT = {"plugins/cli", "plugins/console"}
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def lines_of(module):
    return len(module.read_text().splitlines())


def code_lines(text):
    """How many lines are neither blank nor comment nor docstring."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))

    return len(lines)


def kernel_modules(packages):
    core = packages[0]
    return [module for module in core.modules if "kits" not in module.relative_to(core.source).parts]


def calls_of_print(text):
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def test_code_lines_are_counted_without_blank_comment_and_docstring_lines():
    text = '"""Title.\n\nMore.\n"""\n\n# why\nx = """a\nb"""  # a value\n\ndef f():\n    """Does."""\n    return x\n'
    assert code_lines(text) == 4


def test_a_call_of_print_is_found_and_a_method_of_that_name_is_not():
    assert calls_of_print("printer.print()\nprint(1)\n") == [2]


def test_no_module_is_over_the_limit(package):
    lengths = {str(module.relative_to(package.path)): lines_of(module) for module in package.modules}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_MODULE} == {}


def test_no_script_of_the_root_is_over_the_limit(root):
    assert all(lines_of(module) <= LONGEST_MODULE for module in root.glob("*.py"))


def test_the_kernel_stays_within_its_lines_of_code(packages):
    counts = [code_lines(module.read_text()) for module in kernel_modules(packages)]
    assert counts
    total = sum(counts)
    assert total <= KERNEL_CODE_LINES


def test_the_kernel_stays_within_its_lines_in_all(packages):
    total = sum(map(lines_of, kernel_modules(packages)))
    assert total <= KERNEL_LINES


def test_nothing_prints_but_the_console_and_the_command_line(package):
    if package.folder not in MAY_PRINT:
        found = {str(module): calls_of_print(module.read_text()) for module in package.modules}
        assert {module: lines for module, lines in found.items() if lines} == {}
