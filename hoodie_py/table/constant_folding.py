"""Compute the parts of a filter that name no column, once, when the filter is parsed.

This makes a bad literal (``day = 'soon'``) an error before any file is opened, and lets ``pruning`` compare statistics
with plain literals. It does the work of Spark's ``ConstantFolding``.
"""

from __future__ import annotations

import dataclasses

from hoodie_py.table.evaluate import evaluate_constant
from hoodie_py.table.predicate import And, ArrowFilter, Column, Literal, Node, Or


def fold(node: Node) -> Node:
    """Replace each subtree without columns by its value.

    Raises:
        InvalidQueryError: a constant subtree has no value, such as ``1 / 0``.
    """
    if isinstance(node, (Literal, Column, ArrowFilter)):
        return node
    if isinstance(node, (And, Or)):
        node = dataclasses.replace(node, operands=tuple(fold(operand) for operand in node.operands))
    else:
        folded = {
            field.name: fold(child)
            for field in dataclasses.fields(node)  # type: ignore[arg-type]
            if isinstance(child := getattr(node, field.name), Node)
        }
        node = dataclasses.replace(node, **folded)  # type: ignore[type-var]
    return evaluate_constant(node) if all(isinstance(child, Literal) for child in node.children) else node
