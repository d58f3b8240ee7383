"""Type hints and docstrings as JSON Schema (2020-12) and converters. Floor 2.

``function_schema`` reads a function once and compiles closures; each call then only runs them.
``compile_schema`` checks values against schemas that were written by hand.

**Leniency.** Language models send ``"5"`` for ``5``. What loses nothing is converted, at every
level of a value, and everything else is refused:

=================  ================================================================================
hint               is also taken (besides the JSON type in its schema)
=================  ================================================================================
``int``            a float without a fraction (``3.0``); an integer in text (``"3"``, ``"3.0"``)
``float``          an integer; a number in text. Never NaN or infinity
``bool``           ``"true"``, ``"false"``. Never 0 or 1; a bool is never an int or float
``None``           ``"null"``
``Literal, Enum``  of int or bool: the same in text
``Decimal``        a number (its schema takes both; text is exact)
``datetime``       a date alone: its midnight
``timedelta``      a number of seconds (its schema is an ISO 8601 duration; no years, no months)
arrays, objects    their JSON as text
=================  ================================================================================

Numbers in text are JSON numbers: no spaces, no ``+5``, no ``007``. A union takes the first member
that fits exactly, left to right, and only then the first that fits this way; so text stays text
wherever ``str`` is a member. An object's unknown keys are refused, and so is ``null`` where the
hint has no ``None`` (a parameter whose default is ``None`` takes it). Two equal items of a set are
refused.

**Bounds.** 64 levels of nesting, 10 violations in one error, 1,000 characters for a number in text.
No error holds an argument's or a result's value.

Everything here is thread-safe once made.
"""

from __future__ import annotations

from raxol_sync.schema.constraints import HeaderParam, Param
from raxol_sync.schema.dump import to_json
from raxol_sync.schema.headers import header_paths, header_problems
from raxol_sync.schema.signature import FunctionSchema, function_schema
from raxol_sync.schema.validator import SchemaValidator, check_schema_shape, compile_schema
from raxol_sync.schema.violations import ArgumentError, ResultError, Violation

__all__ = [
    # from functions
    "function_schema",
    "FunctionSchema",
    "Param",
    "HeaderParam",
    # from schemas
    "compile_schema",
    "check_schema_shape",
    "SchemaValidator",
    "header_paths",
    "header_problems",
    # values and errors
    "to_json",
    "ArgumentError",
    "ResultError",
    "Violation",
]
