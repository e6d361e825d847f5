"""Parameters as the reading process tells them, which may be anything: of a file that was made for that."""

from __future__ import annotations

from typing import Any

import pytest
from stallscope.tracers.dwarf.parameters import member_names, parameters_of
from stallscope.tracers.expressions import nodes
from stallscope.tracers.expressions.asked import Asked, Fault
from stallscope.tracers.expressions.types import Integer, Pointer, Struct

INTEGER = {"kind": "integer", "size": 4, "signed": True}


def told(types: dict[str, Any], *parameters: dict[str, Any], result: int = 0) -> dict[str, Any]:
    return {"types": types, "functions": [{"parameters": list(parameters), "result": result}]}


def test_a_parameter() -> None:
    types = {"1": INTEGER, "2": {"kind": "pointer", "target": 3}}
    types["3"] = {"kind": "struct", "name": "s", "size": 16, "members": [["n", 8, 1], ["next", 0, 2]]}
    parameter = {"name": "p", "type": 2, "place": ["arg2"]}
    (found,) = parameters_of(told(types, parameter, result=1), 1)
    assert found.fault == ""
    kind = found.values["p"].type
    assert isinstance(kind, Pointer)
    assert isinstance(kind.target, Struct)
    assert kind.target.members.find("n") == (8, Integer(32, True))
    bound = Asked.parse(where=["p->next->n > 3 && retval < 0"]).bind(found.values)
    assert bound.where is not None
    assert {each.name for each in nodes.walk(bound.where) if isinstance(each, nodes.Input)} == {"arg2", "retval"}


def test_a_parameter_on_the_stack() -> None:
    (found,) = parameters_of(told({"1": INTEGER}, {"name": "n", "type": 1, "place": [16]}), 1)
    loads = [each for each in nodes.walk(found.values["n"]) if isinstance(each, nodes.Load)]
    assert len(loads) == 1
    assert {each.value for each in nodes.walk(loads[0]) if isinstance(each, nodes.Constant)} == {16}


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        {},
        {"functions": []},
        {"functions": [{}], "types": {}},
        {"functions": [None], "types": {}},
        {"functions": "x", "types": []},
        {"functions": [{"parameters": [], "result": float("inf")}], "types": {}},
        told({}, {"name": "n", "type": 1, "place": ["arg1"]}),
        told({"1": {"kind": "integer", "size": 3, "signed": 1}}, {"name": "n", "type": 1, "place": ["arg1"]}),
        told({"1": INTEGER}, {"name": "n", "type": 1, "place": ["arg7"]}),
        told({"1": INTEGER}, {"name": "n", "type": 1, "place": ["ax; evil"]}),
        told({"1": INTEGER}, {"name": "n", "type": 1, "place": [-8]}),
        told({"1": INTEGER}, {"name": "n", "type": 1, "place": []}),
        told(
            {"1": {"kind": "struct", "name": "s", "size": -1, "members": []}},
            {"name": "n", "type": 1, "place": ["arg1"]},
        ),
        told(
            {"1": {"kind": "struct", "name": "s", "size": 1, "members": [["a", 1 << 40, 1]]}},
            {"name": "n", "type": 1, "place": ["arg1"]},
        ),
        told({"1": {"kind": "array", "element": 1, "count": -1}}, {"name": "n", "type": 1, "place": ["arg1"]}),
        told({"1": {"kind": "other"}}, {"name": "n", "type": 1, "place": ["arg1"]}),
    ],
)
def test_nonsense_is_one_reason(found: Any) -> None:
    (function,) = parameters_of(found, 1)
    assert function.fault.startswith("its debug information")
    assert function.values == {}


def test_types_that_lead_to_themselves() -> None:
    types = {"1": {"kind": "pointer", "target": 1}, "2": {"kind": "array", "element": 2, "count": 2}}
    parameters = [{"name": f"p{i}", "type": i, "place": ["arg1"]} for i in (1, 2)]
    (found,) = parameters_of(told(types, *parameters), 1)
    assert found.values.keys() == {"p1", "p2", "retval"}


def test_what_every_function_has_comes_first() -> None:
    """A parameter may be called pid: that name is the process in all expressions."""
    (found,) = parameters_of(told({"1": INTEGER}, {"name": "pid", "type": 1, "place": ["arg1"]}), 1)
    bound = Asked.parse(where=["pid > 1"]).bind(found.values)
    assert bound.where is not None
    assert {each.name for each in nodes.walk(bound.where) if isinstance(each, nodes.Input)} == {"pid"}


def test_names_of_members() -> None:
    asked = Asked.parse(["n:u32=a->b"], ["-c.d[e.f] == 1"], ["u8(g.h)"], prints=["i.j, k"])
    assert member_names(asked) == {"b", "d", "f", "h", "j"}


@pytest.mark.parametrize(
    "member", [{"kind": "integer", "size": 3, "signed": 1}, {"kind": "array", "count": 1}, None, {"kind": "pointer"}]
)
def test_members_that_are_nonsense_cannot_be_read(member: Any) -> None:
    """Members are looked at when an expression names them."""
    types = {
        "1": {"kind": "pointer", "target": 2},
        "2": {"kind": "struct", "name": "s", "size": 8, "members": [["m", 0, 3], ["n", 0, 4]]},
        "3": member,
    }
    (found,) = parameters_of(told(types, {"name": "p", "type": 1, "place": ["arg1"]}), 1)
    for name in ("m", "n"):
        with pytest.raises(Fault, match="debug information is damaged"):
            Asked.parse(where=[f"p->{name} > 3"]).bind(found.values)
