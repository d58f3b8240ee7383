"""The Model Context Protocol for synchronous Python: plain functions, calls and threads.

Names load at first use: a script that only calls servers does not pay for the server's half, nor a
server for the client's.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from raxol_sync._version import __version__

if TYPE_CHECKING:
    from raxol_sync._deadline import DEFAULT
    from raxol_sync.client.client import Client
    from raxol_sync.client.group import ClientGroup
    from raxol_sync.client.metering import ReservationLedger
    from raxol_sync.client.naming import parse_tool_name, tool_name
    from raxol_sync.client.subscription import ClientSubscription
    from raxol_sync.client.terminal import terminal_elicit
    from raxol_sync.content import (
        Audio,
        Contents,
        EmbeddedResource,
        Image,
        Message,
        ResourceLink,
        Text,
        UnknownContent,
    )
    from raxol_sync.definitions import Prompt, Resource, ResourceTemplate, Tool
    from raxol_sync.errors import (
        BreakerOpen,
        Busy,
        Cancelled,
        ConnectFailed,
        ConnectionLost,
        HandlerFailed,
        HTTPStatusError,
        InputRequired,
        InvalidArguments,
        InvalidResponse,
        InvalidSpec,
        InvalidTool,
        MCPError,
        MessageTooLarge,
        NotReady,
        RedirectRefused,
        RequestTimeout,
        RPCError,
        SensitiveToolError,
        ServerExited,
        SessionRejected,
        TargetBlocked,
        ToolError,
        UnknownPrice,
        UnmeteredCall,
    )
    from raxol_sync.inputs import (
        Elicit,
        Root,
        Roots,
        Sample,
        SampleResult,
        URLElicitationRequired,
    )
    from raxol_sync.policy import (
        ALLOW,
        Ask,
        AuthorizationContext,
        Deny,
        allow_all,
        allowlist,
        deny_all,
    )
    from raxol_sync.registry import Registry
    from raxol_sync.schema import HeaderParam, Param
    from raxol_sync.server.context import Context
    from raxol_sync.server.http.deployment import Deployment, DeploymentError
    from raxol_sync.server.http.serving import HTTPService
    from raxol_sync.server.server import Server
    from raxol_sync.server.subscription import Subscription
    from raxol_sync.tool_use import ToolUse, ToolUseResult
    from raxol_sync.values import (
        CallResult,
        Completion,
        ElicitResult,
        PromptInfo,
        PromptMessages,
        ResourceInfo,
        ResourceTemplateInfo,
        ServerInfo,
        ServerStats,
        Status,
        ToolInfo,
        ToolResult,
    )

# Where each public name lives, below this package.
_HOMES = {
    "DEFAULT": "_deadline",
    "Client": "client.client",
    "ClientGroup": "client.group",
    "ReservationLedger": "client.metering",
    "ClientSubscription": "client.subscription",
    "parse_tool_name": "client.naming",
    "tool_name": "client.naming",
    "terminal_elicit": "client.terminal",
    "Audio": "content",
    "Contents": "content",
    "EmbeddedResource": "content",
    "Image": "content",
    "Message": "content",
    "ResourceLink": "content",
    "Text": "content",
    "UnknownContent": "content",
    "Prompt": "definitions",
    "Resource": "definitions",
    "ResourceTemplate": "definitions",
    "Tool": "definitions",
    "BreakerOpen": "errors",
    "Busy": "errors",
    "Cancelled": "errors",
    "ConnectFailed": "errors",
    "ConnectionLost": "errors",
    "HTTPStatusError": "errors",
    "HandlerFailed": "errors",
    "InputRequired": "errors",
    "InvalidArguments": "errors",
    "InvalidResponse": "errors",
    "InvalidSpec": "errors",
    "InvalidTool": "errors",
    "MCPError": "errors",
    "MessageTooLarge": "errors",
    "NotReady": "errors",
    "RedirectRefused": "errors",
    "RequestTimeout": "errors",
    "RPCError": "errors",
    "SensitiveToolError": "errors",
    "ServerExited": "errors",
    "SessionRejected": "errors",
    "TargetBlocked": "errors",
    "ToolError": "errors",
    "UnknownPrice": "errors",
    "UnmeteredCall": "errors",
    "Elicit": "inputs",
    "Root": "inputs",
    "Roots": "inputs",
    "Sample": "inputs",
    "SampleResult": "inputs",
    "URLElicitationRequired": "inputs",
    "ALLOW": "policy",
    "Ask": "policy",
    "AuthorizationContext": "policy",
    "Deny": "policy",
    "allow_all": "policy",
    "allowlist": "policy",
    "deny_all": "policy",
    "Registry": "registry",
    "HeaderParam": "schema",
    "Param": "schema",
    "Context": "server.context",
    "Deployment": "server.http.deployment",
    "DeploymentError": "server.http.deployment",
    "HTTPService": "server.http.serving",
    "Server": "server.server",
    "Subscription": "server.subscription",
    "CallResult": "values",
    "Completion": "values",
    "ElicitResult": "values",
    "PromptInfo": "values",
    "PromptMessages": "values",
    "ResourceInfo": "values",
    "ResourceTemplateInfo": "values",
    "ServerInfo": "values",
    "ServerStats": "values",
    "Status": "values",
    "ToolInfo": "values",
    "ToolResult": "values",
    "ToolUse": "tool_use",
    "ToolUseResult": "tool_use",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home; Python calls this once for each (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "ALLOW",
    "Ask",
    "Audio",
    "AuthorizationContext",
    "BreakerOpen",
    "Busy",
    "CallResult",
    "Cancelled",
    "Client",
    "ClientGroup",
    "ClientSubscription",
    "Completion",
    "ConnectFailed",
    "ConnectionLost",
    "Contents",
    "Context",
    "DEFAULT",
    "Deny",
    "Deployment",
    "DeploymentError",
    "Elicit",
    "ElicitResult",
    "EmbeddedResource",
    "HTTPService",
    "HTTPStatusError",
    "HandlerFailed",
    "HeaderParam",
    "Image",
    "InputRequired",
    "InvalidArguments",
    "InvalidResponse",
    "InvalidSpec",
    "InvalidTool",
    "MCPError",
    "Message",
    "MessageTooLarge",
    "NotReady",
    "Param",
    "Prompt",
    "PromptInfo",
    "PromptMessages",
    "RPCError",
    "RedirectRefused",
    "Registry",
    "RequestTimeout",
    "ReservationLedger",
    "Resource",
    "ResourceInfo",
    "ResourceLink",
    "ResourceTemplate",
    "ResourceTemplateInfo",
    "Root",
    "Roots",
    "Sample",
    "SampleResult",
    "SensitiveToolError",
    "Server",
    "ServerExited",
    "ServerInfo",
    "ServerStats",
    "SessionRejected",
    "Status",
    "Subscription",
    "TargetBlocked",
    "Text",
    "Tool",
    "ToolError",
    "ToolInfo",
    "ToolResult",
    "ToolUse",
    "ToolUseResult",
    "URLElicitationRequired",
    "UnknownContent",
    "UnknownPrice",
    "UnmeteredCall",
    "__version__",
    "allow_all",
    "allowlist",
    "deny_all",
    "parse_tool_name",
    "terminal_elicit",
    "tool_name",
]
