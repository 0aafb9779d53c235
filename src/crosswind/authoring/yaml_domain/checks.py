"""Read a declaration and check that its parts fit together.

`read_declaration` gives a declaration in which every table, column, tool, detail and step that is mentioned exists, or
raises a `BadFile` with the line and the remedy.
"""

from __future__ import annotations

from pathlib import Path

from crosswind.authoring.yaml_domain.checker import Checker
from crosswind.authoring.yaml_domain.family_checks import FamilyChecks
from crosswind.authoring.yaml_domain.schema import Declaration
from crosswind.authoring.yaml_domain.table_checks import TableChecks
from crosswind.authoring.yaml_domain.tool_checks import ToolChecks
from crosswind.base import files
from crosswind.base.errors import BadFile
from crosswind.base.files import Document


def read_declaration(path: Path | str) -> tuple[Declaration, Document]:
    """Read and check a file; the document still knows the lines."""
    document = files.read(path)
    if not isinstance(document.data, dict):
        raise BadFile(f"{document.where}:1: expected a YAML domain; {files.expected(Declaration, ())}")
    declared = document.fit(Declaration)
    Checker(document, declared).word(declared.domain, ("domain",), "the domain")
    for checks in (TableChecks, ToolChecks, FamilyChecks):
        checks(document, declared).run()
    return declared, document
