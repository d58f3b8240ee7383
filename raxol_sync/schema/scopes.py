"""Where the names in a hint are looked up, and what a type variable stands for. Floor 2.

Annotations may be text (``from __future__ import annotations``), forward references, or lazy
(Python 3.14). They are evaluated one at a time, so that one that cannot be does not spoil the
others. Nothing here is kept after registration.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any, ForwardRef, Generic, TypeVar, get_args, get_origin

from raxol_sync.schema.node import UnsupportedHint
from raxol_sync.schema.violations import MAX_DEPTH

_MAX_FRAMES = 64  # how far up the stack the function that wrote a local class may be


@dataclass(frozen=True)
class Scope:
    """The namespaces of one function or class.

    ``variables`` says what each type variable stands for: a hint, and the scope it was written in.
    """

    globals: Mapping[str, Any] = field(default_factory=dict)
    locals: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[Any, tuple[Any, Scope]] = field(default_factory=dict)


def function_scope(function: Any) -> Scope:
    """Return the scope of a function: its module, its closure, and the calls it was written in.

    A local class that only an annotation in text mentions is in no closure. It is found in the
    frame that is just now running the ``def``: decorators run inside it.
    """
    if not isinstance(function, FunctionType):
        return Scope()
    names: dict[str, Any] = {}
    code = function.__code__
    frame = sys._getframe(1)
    for _ in range(_MAX_FRAMES):
        if code in _constants(frame.f_code):
            if frame.f_locals is not frame.f_globals:
                names = {**frame.f_locals, **names}
            code = frame.f_code
        if frame.f_back is None:
            break
        frame = frame.f_back
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for variable in getattr(function, "__type_params__", ()):
        names.setdefault(variable.__name__, variable)
    return Scope(function.__globals__, names)


def _constants(code: CodeType) -> list[CodeType]:
    found = [item for item in code.co_consts if isinstance(item, CodeType)]
    for item in list(found):
        if item.co_name.startswith("<generic parameters"):  # of `def f[T]()`, one level between
            found += _constants(item)
    return found


def class_scope(kind: Any, outer: Scope, arguments: Sequence[Any] = ()) -> Scope:
    """Return the scope of a class body (or of a type alias with parameters).

    Args:
        kind: The class.
        outer: The scope it was mentioned in; names that its own module lacks are looked up there.
        arguments: What it was subscripted with, written in ``outer``.
    """
    module = sys.modules.get(kind.__module__)
    own = dict(vars(module)) if module is not None else {}
    if "<locals>" in getattr(kind, "__qualname__", ""):
        # Beside a local class, the names of its function hide those of the module.
        names = {**outer.globals, **own, **outer.locals, kind.__name__: kind}
    else:
        names = {**outer.globals, **outer.locals, **own}
    written = getattr(kind, "__type_params__", ())
    for variable in written:
        names.setdefault(variable.__name__, variable)
    names.setdefault(kind.__name__, kind)
    parameters = getattr(kind, "__parameters__", written)
    variables = {p: resolve(a, outer) for p, a in zip(parameters, arguments, strict=False)}
    return Scope(names, {}, variables)


def base_scopes(kind: Any, scope: Scope) -> dict[Any, Scope]:
    """Return the scope of the class and of each of its bases, type arguments carried along."""
    found = {kind: scope}
    for written in vars(kind).get("__orig_bases__", kind.__bases__):
        base = get_origin(written) or written
        if isinstance(base, type) and base not in (object, Generic):
            inner = class_scope(base, scope, get_args(written))
            found = {**base_scopes(base, inner), **found}
    return found


def annotations_of(owner: Any) -> dict[str, Any]:
    """Return the annotations written on a function or class itself, unevaluated where possible."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return dict(get_annotations(owner, format=Format.FORWARDREF))
    else:
        return inspect.get_annotations(owner)


def resolve(hint: Any, scope: Scope) -> tuple[Any, Scope]:
    """Return the hint that text, a forward reference or a type variable stands for, and its scope.

    Raises:
        UnsupportedHint: If a name in the text is not known.
    """
    for _ in range(MAX_DEPTH):  # text that stands for text; a chain this long is a mistake
        if isinstance(hint, ForwardRef):
            hint = _forward(hint, scope)
        elif isinstance(hint, str):
            hint = _evaluate(hint, scope)
        elif isinstance(hint, TypeVar) and hint in scope.variables:
            hint, scope = scope.variables[hint]
        else:
            return hint, scope
    raise UnsupportedHint("a forward reference leads to itself; name a class instead")


def is_class(hint: Any) -> bool:
    """Return whether ``hint`` is a class itself; on Python 3.10 ``list[int]`` passes for a type."""
    return isinstance(hint, type) and get_origin(hint) is None


def _forward(hint: ForwardRef, scope: Scope) -> Any:
    module = getattr(hint, "__forward_module__", None)
    if isinstance(module, str):
        module = sys.modules.get(module)
    if module is not None:
        scope = replace(scope, globals={**scope.globals, **vars(module)})
    return _evaluate(hint.__forward_arg__, scope)


def _evaluate(text: str, scope: Scope) -> Any:
    try:
        # The text is the program's own source, as typing.get_type_hints evaluates it.
        return eval(text, dict(scope.globals), dict(scope.locals))
    except NameError as error:
        raise UnsupportedHint(
            f"the annotation {text!r} names {error.name!r}, which is not defined there; import it "
            "at module level, not only under TYPE_CHECKING"
        ) from None
    except Exception as error:  # an annotation is any expression; registration reports which one
        raise UnsupportedHint(
            f"the annotation {text!r} cannot be evaluated ({type(error).__name__}); write a hint "
            "that is valid when the program runs"
        ) from None
