#!/usr/bin/env python3
"""Resources and prompts: list what there is, read one, render one."""

import sys
from pathlib import Path

from raxol_sync import Client, Text

SERVER = Path(__file__).with_name("server.py")


def main() -> None:
    """Print a report and a prompt."""
    with Client("weather", command=sys.executable, args=[str(SERVER)]) as weather:
        for template in weather.list_resource_templates():
            print("template:", template.uri_template)
        print("report:", weather.read_resource("weather://Rome/report")[0].text)
        for prompt in weather.list_prompts():
            print("prompt:", prompt.name, [argument["name"] for argument in prompt.arguments])
        message = weather.get_prompt("compare", {"first": "Rome", "second": "Oslo"})[0]
        if isinstance(message.content, Text):
            print(f"{message.role}: {message.content.text}")


if __name__ == "__main__":
    main()
