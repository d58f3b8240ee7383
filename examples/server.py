#!/usr/bin/env python3
"""A server: two tools, a resource, a prompt. The other examples call it."""

from typing import Annotated, Literal

from raxol_sync import Server, ToolError

server = Server("weather", instructions="Ask for a city's temperature.")
TEMPERATURES = {"Oslo": 4.0, "Rome": 17.5, "Cairo": 24.0}


@server.tool
def temperature(city: Annotated[str, "a city's name"], unit: Literal["C", "F"] = "C") -> float:
    """Tell how warm it is in a city."""
    if city not in TEMPERATURES:
        raise ToolError(f"no station in {city}; there are {', '.join(TEMPERATURES)}")
    celsius = TEMPERATURES[city]
    return celsius if unit == "C" else celsius * 9 / 5 + 32


@server.tool(annotations={"readOnlyHint": True})
def cities() -> list[str]:
    """List the cities that have a station."""
    return sorted(TEMPERATURES)


@server.resource("weather://{city}/report", mime_type="text/plain")
def report(city: str) -> str:
    """The report of one city, as text."""
    return f"{city}: {temperature(city)} degrees"


@server.prompt
def compare(first: str, second: str) -> str:
    """Ask which of two cities is nicer today."""
    return f"Is the weather nicer in {first} or in {second}? Use the temperature tool."


if __name__ == "__main__":
    server.run()
