"""The JSON reader for clients that must not send YAML: one object within the limits of this package."""

from __future__ import annotations

import json
from typing import NoReturn

from reconciler.core.schema.yaml.json_fast_path import NotPlainError, read_json
from reconciler.core.schema.yaml.limits import MAX_DEPTH, MAX_NODES
from reconciler.core.schema.yaml.load import parse
from reconciler.core.schema.yaml.syntax_errors import encoding_problem
from reconciler.errors import InvalidInput, Problem
from reconciler.model.workload import Json


def read_object(data: bytes, path: str) -> dict[str, Json]:
    """Read one object of JSON.

    Raises InvalidInput for anything else: duplicate keys, NaN, numbers beyond 64 bits, more than 64 levels, half of a
    surrogate pair.
    """
    problem = encoding_problem(data, path)
    if problem is not None:
        raise InvalidInput(problems=(problem,))
    try:
        value = read_json(data)
    except NotPlainError as error:
        raise InvalidInput(problems=_problems(data, path)) from error
    if not isinstance(value, dict):
        raise InvalidInput(problems=(Problem(path=path, line=1, message="must be an object", hint="try {...}"),))
    return value


def _problems(data: bytes, path: str) -> tuple[Problem, ...]:
    """Return the reasons why a text cannot be read, in the order of its readers.

    JSON is YAML too, so that the YAML reader finds the line of any fault that is not one of JSON itself.
    """
    if not data.strip():
        return (Problem(path=path, message="is empty", hint="try {}"),)
    try:
        value = json.loads(data, parse_constant=_no_number, parse_int=len)  # the size of a number is checked later
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return (Problem(path=path, line=error.lineno, message=f"is not JSON: {error.msg} at column {error.colno}"),)
    except UnicodeEncodeError:
        return (Problem(path=path, message="holds half of a surrogate pair", hint="try the whole character"),)
    except ValueError as error:
        return (Problem(path=path, message=str(error), hint="try null, or leaving the field out"),)
    except RecursionError:
        pass  # the other reader does not recurse, and reports the depth
    try:
        parse(data, path)
    except InvalidInput as error:
        if not any(problem.message.startswith("is not YAML") for problem in error.problems):
            return error.problems
    # YAML has no surrogate pairs, so that its reader stops at a text that holds some.
    limits = f"{MAX_DEPTH} levels, {MAX_NODES:,} values or 64-bit numbers"
    return (Problem(path=path, message=f"has the same key twice in an object, or more than {limits}"),)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"holds {word}, which is no JSON")
