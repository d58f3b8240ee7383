"""The Model Context Protocol for synchronous Python: plain functions, calls and threads."""

from raxol_sync._deadline import DEFAULT
from raxol_sync._version import __version__
from raxol_sync.client.client import Client
from raxol_sync.client.group import ClientGroup
from raxol_sync.client.naming import parse_tool_name, tool_name
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
    Busy,
    Cancelled,
    ConnectFailed,
    InputRequired,
    InvalidResponse,
    InvalidSpec,
    InvalidTool,
    MCPError,
    MessageTooLarge,
    NotReady,
    RequestTimeout,
    RPCError,
    SensitiveToolError,
    ServerExited,
    ToolError,
)
from raxol_sync.inputs import Elicit, Root, Roots, Sample, SampleResult
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
from raxol_sync.server.server import Server
from raxol_sync.server.subscription import Subscription
from raxol_sync.values import (
    CallResult,
    Completion,
    ElicitResult,
    PromptInfo,
    PromptMessages,
    ResourceInfo,
    ResourceTemplateInfo,
    ServerStats,
    Status,
    ToolInfo,
    ToolResult,
)

__all__ = [
    "ALLOW",
    "Ask",
    "Audio",
    "AuthorizationContext",
    "Busy",
    "CallResult",
    "Cancelled",
    "Client",
    "ClientGroup",
    "Completion",
    "ConnectFailed",
    "Contents",
    "Context",
    "DEFAULT",
    "Deny",
    "Elicit",
    "ElicitResult",
    "EmbeddedResource",
    "HeaderParam",
    "Image",
    "InputRequired",
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
    "Registry",
    "RequestTimeout",
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
    "ServerStats",
    "Status",
    "Subscription",
    "Text",
    "Tool",
    "ToolError",
    "ToolInfo",
    "ToolResult",
    "UnknownContent",
    "__version__",
    "allow_all",
    "allowlist",
    "deny_all",
    "parse_tool_name",
    "terminal_elicit",
    "tool_name",
]
