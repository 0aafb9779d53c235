"""A to-do list as an MCP server over standard input and output, with nothing to install: for the tutorial."""

import json
import sys

TASKS = {"T1": {"title": "Call the plumber", "done": False}, "T2": {"title": "Pay the rent", "done": False}}
ID = {"type": "object", "properties": {"task_id": {"type": "string"}}, "required": ["task_id"]}
TOOLS = [
    {
        "name": "list_tasks",
        "description": "List all tasks with their ids.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "complete_task", "description": "Mark a task as done, by its id.", "inputSchema": ID},
]


def call(name, args):
    if name == "list_tasks":
        return [{"task_id": key, **task} for key, task in TASKS.items()]
    TASKS[args["task_id"]]["done"] = True
    return {"task_id": args["task_id"], "done": True}


def answer(method, params):
    if method == "initialize":
        about = {"name": "todo", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        text = json.dumps(call(params["name"], params.get("arguments", {})))
        return {"content": [{"type": "text", "text": text}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
